"""Makes the pictures of the README, ``docs/pictures``: a run on a terminal, and the report of several runs.

``make screenshots`` writes them. They show the real command on the demo shop, so they differ in times and ids whenever they are made.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from rich import console as rich_console
from rich import terminal_theme, text
from typing_extensions import override

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from runtime.browser.chromium import find  # noqa: E402 — the root comes first
from tests import shop_process, terminal  # noqa: E402 — the root comes first

COLUMNS, ROWS = 96, 22
RUNOPS = str(Path(sys.executable).with_name("runops"))
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""A picture of a terminal that loads nothing: the one of ``rich`` fetches a font."""


class Coloured(terminal.Screen):
    """A screen that also keeps the colours of its cells."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self._sgr = ""
        self._styles: dict[tuple[int, int], str] = {}

    @override
    def _obey(self, arguments: str, command: str) -> None:
        if command == "m":
            self._sgr = "" if arguments in ("", "0") else f"{self._sgr}\x1b[{arguments}m"
        else:
            super()._obey(arguments, command)

    @override
    def _write(self, char: str) -> None:
        self._styles[self._row + len(self.above), self._column] = self._sgr
        super()._write(char)

    def picture(self, title: str) -> str:
        """Return the screen as SVG."""
        drawn = rich_console.Console(record=True, width=self.columns, file=io.StringIO())
        for row, line in enumerate(self.lines):
            styled = "".join(
                f"\x1b[0m{self._styles.get((row + len(self.above), column), '')}{char}"
                for column, char in enumerate(line)
            )
            drawn.print(text.Text.from_ansi(styled), no_wrap=True, overflow="crop")
        return drawn.export_svg(title=title, theme=terminal_theme.DIMMED_MONOKAI, code_format=FRAME, unique_id="run")


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """The examples in a folder of their own, and a shop."""

    folder: Path
    shop: shop_process.Shop

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS", "NO_COLOR")}
        path = f"{Path(RUNOPS).parent}{os.pathsep}{os.environ['PATH']}"
        return {**ours, "PATH": path, "TERM": "xterm-256color", "SHOP_PASSWORD": self.shop.password}


def run_on_a_terminal(stage: Stage) -> str:
    """Return the picture of a run that is half-way through its loop."""
    # Slow enough that a person could read along.
    stage.shop.switch("delay", path="/orders/.*/pay", method="POST", ms=400, times=None)
    command = ["run", "workflows/pay_orders.yaml", "-i", f"base_url={stage.shop.url}"]
    with terminal.Terminal(
        [RUNOPS, *command], columns=COLUMNS, rows=ROWS, environment=stage.environment, folder=stage.folder
    ) as shown:
        shown.screen = screen = Coloured(COLUMNS, ROWS)
        screen.feed("$ runops run workflows/pay_orders.yaml\r\n")
        shown.wait_for(lambda: "6/9" in shown.text)
        picture = screen.picture("runops")
        if (code := shown.wait()) != 0:
            raise SystemExit(f"the run ended with exit code {code}:\n{shown.everything}")
    return picture


FAILING = """version: 1
name: Buy the coffee
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/prices"}
  - {id: coffee, type: browser_query, query: text, as: number, target: {css: td.total, within: {role: row, has_text: COFFEE-1}}}
  - {id: buy, type: browser_action, action: click, timeout: 1, target: {role: button, name: Buy now, within: {role: row, has_text: COFFEE-1}}}
"""
CASES = ("book_delivery", "export_orders", "fill_form", "open_total", "pay_orders", "refund_order", "watch_prices")


def report(stage: Stage) -> Path:
    """Return the report of several runs; one has failed."""
    (stage.folder / "workflows" / "buy_coffee.yaml").write_text(FAILING, encoding="utf-8")
    files = [f"workflows/{name}.yaml" for name in ("buy_coffee", *CASES)]
    file = stage.folder / "report.html"
    given = ["-i", f"base_url={stage.shop.url}", "--trace", "on-failure", "--html", str(file)]
    done = subprocess.run(
        [RUNOPS, "run", *files, *given],
        cwd=stage.folder,
        env=stage.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 1:
        raise SystemExit(f"one of these runs should have failed:\n{done.stderr}")
    return file


def photograph(file: Path, output: Path) -> None:
    """Take the pictures of the report: its list, and the failed step, each in light and in dark."""
    executable = find.find()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        page = browser.new_page(viewport={"width": 1120, "height": 720}, device_scale_factor=1.5)
        page.goto(file.as_uri())
        take(page, output / "report-{theme}.png")
        for key in ("f", "Enter", "f"):
            page.keyboard.press(key)
        page.get_by_role("heading", name="buy", exact=True).wait_for()
        take(page, output / "step-{theme}.png")
        browser.close()


def take(page: Page, name: Path) -> None:
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=str(name).format(theme=theme))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pictures", help="the folder to write to")
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "shop"
        shutil.copytree(ROOT / "workflows", folder / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        with shop_process.Shop.start(Path(made) / "data") as shop:
            stage = Stage(folder, shop)
            (output / "run.svg").write_text(run_on_a_terminal(stage), encoding="utf-8")
            photograph(report(stage), output)


if __name__ == "__main__":
    main()
