"""A session as a page on which each call opens, with its runs (row 000-22)."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from typing_extensions import override

from runtime.testing.scripted_model import call, first_of, text, when
from tests.builds_rig import PLAN, Builds
from tests.chats import session_of

EVIL = "<img src=https://evil.test/x onerror=alert(1)></pre><script>alert(2)</script>"
LONG = "a very long value " * 300
SECRET = "correct-horse-battery"
TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "p",
        "pre",
        "div",
        "span",
        "b",
        "ul",
        "li",
        "details",
        "summary",
        "table",
        "tr",
        "th",
        "td",
    ]
)


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    @override
    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    @override
    def handle_data(self, data: str) -> None:
        self.text += data


def test_000_22_a_session_is_a_page_on_which_calls_and_runs_open(builds: Builds) -> None:
    """Each call has its whole arguments and output, a run its steps, values and errors; plan, variables and costs are there. Nothing in it is live, nothing secret."""
    stored = json.dumps(EVIL + LONG)
    project = builds.answers(
        first_of(
            when(lambda asked: len(asked.outputs) == 1, call("update_plan", {"plan": PLAN, "reason": EVIL})),
            when(
                lambda asked: len(asked.outputs) == 2,
                call("set_variable", {"name": "kept", "value": stored, "reason": "r"}),
            ),
            otherwise=text("Done " + EVIL),
        ),
        SHOP_PASSWORD=SECRET,
    )
    project.write(
        "evil.yaml",
        f"version: 1\nname: {json.dumps('Evil ' + EVIL)}\nsecrets: [SHOP_PASSWORD]\nnodes:\n"
        f"  - {{id: first, type: transform, expr: {json.dumps(EVIL)}}}\n"
        '  - {id: second, type: transform, expr: "{{ first | number }}"}\n',
    )
    done = project.runops("chat", "evil.yaml", "--mode", "agent", said="/run\nWork\n")
    session = session_of(done)
    shown = project.here("show", session, "--html")
    assert shown.returncode == 0, shown.stderr
    page = Page(shown.stdout)
    assert page.open == []
    assert set(page.tags) <= TAGS
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "open"}
    assert SECRET not in shown.stdout
    assert "default-src 'none'" in shown.stdout
    assert page.text.count(LONG) >= 1, "in the arguments of the call, whole"
    for wanted in ("update_plan", "set_variable", EVIL, "Open it", "kept", "second", "expression-failed", "requests"):
        assert wanted in page.text, wanted
    assert page.tags.count("details") >= 5
    run = project.here("show", project.runs()[-1]["id"], "--html")
    page = Page(run.stdout)
    assert page.open == []
    assert set(page.tags) <= TAGS | {"main", "thead", "tbody", "noscript", "code", "script"}
    assert "expression-failed" in page.text


def test_000_22_a_call_is_shown_whole_on_demand(builds: Builds) -> None:
    """`--full` has each call's whole arguments and output, `--at` one call's; the forms exclude each other."""
    project = builds.answers(
        first_of(
            when("kept", text("Done.")),
            when("Work", call("set_variable", {"name": "kept", "value": json.dumps(LONG), "reason": "r"})),
        )
    )
    session = session_of(project.runops("chat", "--mode", "agent", "-m", "Work"))
    assert LONG not in project.here("show", session).stdout
    assert LONG in project.here("show", session, "--full").stdout
    assert LONG in project.here("show", session, "--at", "1_set_variable").stdout
    for others in (["--html", "--json"], ["--full", "--markdown"], ["--html", "--at", "1_set_variable"]):
        assert project.here("show", session, *others).returncode == 2
    project.here("run", "prices.yaml", "--quiet")
    assert project.here("show", "last", "--full").returncode == 2
