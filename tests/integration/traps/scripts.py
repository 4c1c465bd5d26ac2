"""Runs the naive scripts, each in a separate browser context of one shared Chromium, because starting one takes longer than a script.

python -m tests.integration.traps.scripts EXECUTABLE     for each line on stdin, JSON with `script` and `url`, a line on stdout: `code`, `said`
"""

from __future__ import annotations

import contextlib
import json
import runpy
import subprocess
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Self

from playwright import sync_api

from runtime.browser.chromium import find

ROOT = Path(__file__).parents[3]


class Scripts:
    """The process that runs them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.traps.scripts", str(find.find())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def run(self, script: Path, url: str) -> tuple[int, str]:
        """Runs one script to its end, and returns its exit code and its traceback."""
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        asking.write(json.dumps({"script": str(script), "url": url}) + "\n")
        asking.flush()
        answer = json.loads(answering.readline())
        return answer["code"], answer["said"]


def serve(executable: str) -> None:
    """Runs the requested scripts until standard input ends."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable)

        @contextlib.contextmanager
        def stand_in() -> Generator[SimpleNamespace]:
            with contextlib.ExitStack() as opened:

                def launch(*, executable_path: str) -> sync_api.BrowserContext:
                    assert executable_path == executable
                    return opened.enter_context(browser.new_context())

                yield SimpleNamespace(chromium=SimpleNamespace(launch=launch))

        sync_api.sync_playwright = stand_in
        for line in sys.stdin:
            asked = json.loads(line)
            sys.argv = [asked["script"], asked["url"], executable]
            code, said = 0, ""
            try:
                runpy.run_path(asked["script"], run_name="__main__")
            except Exception:  # noqa: BLE001 - as Python ends a program, whatever it was
                code, said = 1, traceback.format_exc()
            sys.stdout.write(json.dumps({"code": code, "said": said}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
