"""``python -m tests.builds.apps NAME install|serve|reset|state --home DIR [--port N]``: an application for builds by hand.

``serve`` runs until it gets a signal, and then ends all that it started. ``reset`` puts the data back to the beginning while it serves; ``state`` prints the data as JSON.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.builds.apps.app import APPS, App, of, serving


def main() -> int:
    """Do one thing with one application."""
    parser = argparse.ArgumentParser(prog="python -m tests.builds.apps")
    parser.add_argument("name", choices=APPS)
    parser.add_argument("what", choices=("install", "serve", "reset", "state"))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    app = of(given.name)
    home = given.home.resolve()
    port = given.port or APPS[given.name]
    match given.what:
        case "install":
            app.install(home)
        case "serve":
            _serve(app, home, port)
        case "reset":
            app.reset(home, port)
        case _:
            print(json.dumps(app.state(home, port), indent=1, ensure_ascii=False))
    return 0


def _serve(app: App, home: Path, port: int) -> None:
    signals = {signal.SIGINT, signal.SIGTERM}
    with serving(app, home, port):
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        print(f"ready: http://127.0.0.1:{port}/", flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    sys.exit(main())
