"""``python -m tests.builds.recording NAME --mailbox DIR --home .runops --session ID --workflow FILE --url URL``: the record of a build, written to ``docs/builds/NAME/``.

The mailbox is that of the server whose answers a person wrote. The figures come from the requests sent, and from the session's log.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from nodes.values import Json
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.store import file_store
from runtime.models.turns import call_checks
from runtime.workspace import session_index
from tests.builds.goal import Goal
from tests.builds.goals import GOALS

ROOT = Path(__file__).parents[2]
HERE = "{{url}}"
"""The placeholder for the site's address in recorded answers."""


def main() -> int:
    """Write the record, and print its figures; 1 where one is over its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.builds.recording")
    parser.add_argument("name", choices=GOALS)
    for flag in ("mailbox", "home", "session", "workflow", "url"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument(
        "--of-the-site", action="append", default=[], metavar="WHY", help="a failed call that was the site's fault"
    )
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "builds")
    given = parser.parse_args()
    folder: Path = given.to / given.name
    folder.mkdir(parents=True, exist_ok=True)
    mailbox, workflow = Path(given.mailbox), Path(given.workflow)
    found = figures(mailbox, Path(given.home), given.session)
    found["of_the_site"] = given.of_the_site
    goal = GOALS[given.name]
    inputs = "".join(f"\n- input `{name}`: `{value}`" for name, value in goal.inputs.items())
    secrets = "".join(f"\n- secret `{name}`" for name in goal.secrets)
    (folder / "goal.md").write_text(
        f"{goal.goal}\n\n- site: {goal.site}, `--url URL{goal.path}`, `--effects {goal.effects}`{inputs}{secrets}\n"
    )
    shutil.copy(workflow, folder / "workflow.yaml")
    shutil.copy(workflow.with_suffix(".build.md"), folder / "workflow.build.md")
    (folder / "figures.json").write_text(json.dumps(found, indent=2) + "\n")
    (folder / "answers.json").write_text(json.dumps(answers(mailbox, given.url), indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(found))
    return int(over(found, goal))


def over(found: dict[str, Any], goal: Goal) -> bool:
    """True if a figure is over its limit."""
    most = goal.limits
    return (
        found["requests"] > most.requests
        or found["input_tokens"] > most.tokens
        or found["failed_calls"] - len(found.get("of_the_site", ())) > most.failed
        or found["violations"] > 0
    )


def figures(mailbox: Path, home: Path, session: str) -> dict[str, Json]:
    """The numbers of requests, of their tokens, and of failed calls."""
    requests = [json.loads(each.read_text()) for each in sorted(mailbox.glob("[0-9]*.request.json"))]
    violations = mailbox / "violations.log"
    past = session_index.fold(file_store.Files(home).read(session))
    assert isinstance(past, log_session.Session)
    # Calls skipped after a failed call have not failed themselves.
    failed = [
        each.call.action
        for each in past.actions.values()
        if each.result is not None and each.result.error and each.result.error.get("code") != call_checks.OVER
    ]
    return {
        "requests": len(requests),
        "input_tokens": sum(_tokens(each) for each in requests),
        "calls": len(past.actions),
        "failed_calls": len(failed),
        "failed": [str(each) for each in failed],
        "violations": len(violations.read_text().splitlines()) if violations.exists() else 0,
        "delegates": sum(each.startswith(entries.DELEGATE) for each in past.threads),
    }


def answers(mailbox: Path, url: str) -> list[Json]:
    """The answers in order, with ``HERE`` for the site's address."""
    texts = [each.read_text() for each in sorted(mailbox.glob("[0-9]*.answer.json"))]
    return [json.loads(text.replace(url.rstrip("/"), HERE)) for text in texts]


def _tokens(request: dict[str, Any]) -> int:
    """Tokens of a whole request as it is sent: instructions, tools, and the conversation up to it, as JSON without blanks."""
    body = request["body"]
    parts = [body.get("tools") or [], *request["expanded_input"]]
    said = [body.get("instructions") or ""]
    said += [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in parts]
    return sum(len(_encoding().encode_ordinary(each)) for each in said)


@functools.cache
def _encoding() -> Any:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        import bpe_openai

        return bpe_openai.get_encoding("o200k_base")


if __name__ == "__main__":
    sys.exit(main())
