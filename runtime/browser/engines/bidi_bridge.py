"""Starts a Firefox that is no build of Playwright's, and stands between it and Playwright's driver.

The driver's WebDriver BiDi is newer than that of a released Firefox: it sends a command that such a Firefox does not know,
and gives up. The bridge answers it; preferences do the work. It is a program of its own, started by its path as if it were
Firefox: the driver reads the address of the browser from its output.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

UNKNOWN = frozenset({"emulation.setMediaFeaturesOverride"})
"""Commands that the bridge answers: the preferences ``layout.css.prefers-color-scheme.content-override`` and the like replace them."""

LISTENING = "WebDriver BiDi listening on "


async def main() -> int:
    firefox = await asyncio.create_subprocess_exec(*sys.argv[1:], stderr=asyncio.subprocess.PIPE)
    assert firefox.stderr is not None
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(each, firefox.kill)
    address = await _address(firefox.stderr)
    if address is None:
        return await firefox.wait()

    async def bridge(driver: ServerConnection) -> None:
        path = driver.request.path if driver.request is not None else ""
        async with connect(address + path, max_size=None, proxy=None, compression=None) as browser:

            async def back() -> None:
                with contextlib.suppress(ConnectionClosed):
                    async for message in browser:
                        await driver.send(message)
                await driver.close()

            answering = asyncio.ensure_future(back())
            with contextlib.suppress(ConnectionClosed):
                async for message in driver:
                    asked = json.loads(message)
                    if asked.get("method") in UNKNOWN:
                        await driver.send(json.dumps({"type": "success", "id": asked["id"], "result": {}}))
                    else:
                        await browser.send(message)
            await browser.close()
            await answering
        # Firefox belongs to one driver.
        with contextlib.suppress(ProcessLookupError):
            firefox.kill()

    async with serve(bridge, "127.0.0.1", 0, max_size=None, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        sys.stderr.write(f"{LISTENING}ws://127.0.0.1:{port}\n")
        sys.stderr.flush()
        rest = asyncio.ensure_future(_pass_on(firefox.stderr))
        code = await firefox.wait()
        rest.cancel()
    return code


async def _address(output: asyncio.StreamReader) -> str | None:
    while line := (await output.readline()).decode(errors="replace"):
        if found := re.search(rf"{LISTENING}(ws://\S+)", line):
            return found[1]
        sys.stderr.write(line)
    return None


async def _pass_on(output: asyncio.StreamReader) -> None:
    while line := await output.readline():
        sys.stderr.write(line.decode(errors="replace"))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
