"""Records the cassettes of the example workflows: each runs against the demo shop and a scripted model, served by the Responses API.

``make cassettes`` writes them. With ``--check`` nothing is written, and the exit code is 1 if the bytes of one differ.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nodes.values import Json  # noqa: E402 — the root comes first
from runtime.testing import responses, scripted_model  # noqa: E402 — the root comes first

WORKFLOWS = ROOT / "workflows"
PASSWORD = "correct-horse"  # noqa: S105 — the made-up shop's made-up password
MODEL = "example-model"
SECONDS = 180


def goal(category: str, reason: str, *, urgent: bool = False) -> scripted_model.Scripted:
    """Return an answer of the model: the wish of a customer."""
    return scripted_model.text({"category": category, "urgent": urgent, "reason": reason})


SORT_MESSAGES = {
    "Say what the customer wants": {
        "birthday": goal("delivery", "The parcel is two weeks late and is a present for Saturday.", urgent=True),
        "jars of honey": goal("refund", "Two of six jars of honey arrived broken."),
        "ordered twice": goal("refund", "The order was placed twice, and the second parcel goes back unopened."),
        "Merci": goal("other", "A thank-you, written in French: everything arrived well and the coffee is liked."),
        "bookkeeper": goal("invoice", "The bookkeeper needs the invoice again, with the customer's VAT number."),
    },
    "How much money": {
        "jars of honey": scripted_model.text({"value": 24.8}),
        "ordered twice": scripted_model.text({"value": None}),
    },
    "Tell the team": {
        "": scripted_model.text(
            {
                "value": "Order 1001 must be found before Saturday, it is a birthday present. "
                "Besides that there are two refunds (1003, 1004), one invoice to send again (1008), and a thank-you from France (1006)."
            }
        )
    },
}
"""The model's answers, by words of the instruction, then by words of the input."""


def _button(article: str) -> tuple[str, dict[str, Any]]:
    return "find", {"role": "button", "name": "Add to cart", "row": article, "text": None}


ADD: tuple[str, dict[str, Any]] = ("click", {"ref": re.compile('button "Add to cart"')})

SHOPPING: tuple[tuple[str, dict[str, Any]], ...] = (
    _button("HONEY-3"),
    ADD,
    _button("JAM-1"),
    ADD,
    ("find", {"role": "link", "name": "Cart", "row": None, "text": None}),
    ("click", {"ref": re.compile('link "Cart')}),
    ("fill", {"ref": re.compile('textbox "Name"'), "text": "Ada Lovelace"}),
    ("click", {"ref": re.compile('button "Pay"')}),
    ("look", {"ref": None}),
)
"""The agent's calls, in order; a pattern stands for the ref of the line that it matches."""


def buy_breakfast(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """Answer as a model that reads the price list and then shops; it takes each ref from the last shown page."""
    if "tools" not in asked.body:
        spreads = [("HONEY-3", "Heather honey, 350 g", 8.4), ("JAM-1", "Plum jam, 450 g", 5.1)]
        return scripted_model.text(
            {"products": [{"article": each, "name": name, "price": price} for each, name, price in spreads]}
        )
    shown = list(asked.outputs.values())
    if len(shown) < len(SHOPPING):
        name, arguments = SHOPPING[len(shown)]
        return scripted_model.call(name, {key: _found(value, shown) for key, value in arguments.items()})
    said = re.search(r"\w+-\d+-\d+", shown[-1])
    assert said is not None
    done: dict[str, Json] = {"done": True, "note": "Honey and jam are bought and paid."}
    return scripted_model.call("finish", {**done, "output": {"receipt": said[0], "total": 13.5}})


def _found(value: Json, shown: Sequence[str]) -> Json:
    """Replace a pattern by the ref of the last shown line that it matches."""
    if not isinstance(value, re.Pattern):
        return value
    wanted = cast("re.Pattern[str]", value)
    line = next(line for text in reversed(shown) for line in text.splitlines() if wanted.search(line))
    found = re.search(r"\[ref=(\w+)\]", line)
    assert found is not None
    return found[1]


def script(answers: Mapping[str, Mapping[str, scripted_model.Scripted]]) -> scripted_model.Script:
    """Return a model that knows these instructions and inputs, and fails with any other."""

    def said(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        ((_, known),) = [each for each in answers.items() if each[0] in asked.instructions]
        ((_, answer),) = [each for each in known.items() if each[0] in asked.newest]
        return answer

    return said


SCRIPTS = {"buy_breakfast": buy_breakfast, "sort_messages": script(SORT_MESSAGES)}
"""The model of each workflow with a cassette."""


@contextlib.contextmanager
def shop(folder: Path) -> Generator[str]:
    """Serve a new shop on a free port; yield its address. It ends with this process, however that ends."""
    arguments = ["--port", "0", "--db", str(folder / "shop.db"), "--password", PASSWORD, "--quiet", "--until-eof"]
    with subprocess.Popen(
        [sys.executable, "-m", "workflows.shop", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2].rstrip("/")
        finally:
            process.terminate()


def record(name: str, folder: Path) -> bytes:
    """Record a workflow in this empty folder; return the cassette. Ends this process if the run fails."""
    shutil.copytree(
        WORKFLOWS, folder / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__", "cassettes", "shop")
    )
    with shop(folder) as address, responses.serve(SCRIPTS[name], strict=True) as server:
        settings = {
            "SHOP_PASSWORD": PASSWORD,
            "RUNOPS_MODEL": MODEL,
            "RUNOPS_MODEL_BASE_URL": server.url,
            "RUNOPS_MODEL_KEY": server.key,
            "RUNOPS_MODEL_PROFILE": "openai",
        }
        known = {each: value for each, value in os.environ.items() if not each.startswith(("RUNOPS_MODEL", "OPENAI_"))}
        command = ["run", f"workflows/{name}.yaml", "--model-calls", "record", "--quiet", "-i", f"base_url={address}"]
        done = subprocess.run(
            [str(Path(sys.executable).parent / "runops"), *command],
            cwd=folder,
            env=known | settings,
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.returncode)
    return (folder / "workflows" / "cassettes" / f"{name}.json").read_bytes()


def main() -> int:
    """Write the cassettes, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say which would have other bytes")
    checking = parser.parse_args().check
    wrong = 0
    for name in SCRIPTS:
        there = WORKFLOWS / "cassettes" / f"{name}.json"
        with tempfile.TemporaryDirectory() as folder:
            recorded = record(name, Path(folder))
        if there.is_file() and there.read_bytes() == recorded:
            continue
        wrong += 1
        if checking:
            print(f"{there.relative_to(ROOT)} is not what is recorded; fix:  make cassettes", file=sys.stderr)
        else:
            there.parent.mkdir(exist_ok=True)
            there.write_bytes(recorded)
            print(f"recorded {there.relative_to(ROOT)}")
    return 1 if checking and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
