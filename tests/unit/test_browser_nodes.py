"""The browser nodes over fakes: options, values, and log entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.browser_action.fields import to_keys
from nodes.browser_query.rows import headers
from nodes.targets import Target
from nodes.template import Unfit
from nodes.values import Json
from runtime import events
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.report import of_run, text
from tests.fakes import FakePage
from tests.rig import Rig


def rig(home: Path, *nodes: str, **more: Any) -> Rig:
    """A run of these nodes (flow maps), whose output is the last value."""
    head = f"version: 1\nsecrets: [{', '.join(more.get('secrets', {}))}]\n"
    lines = [f"  - {node}" for node in nodes]
    last = json.loads(json.dumps(nodes[-1].partition("id: ")[2].partition(",")[0]))
    return Rig(home, f'{head}nodes:\n{chr(10).join(lines)}\noutput: "{{{{ {last} }}}}"\n', **more)


def action(name: str, of: str, more: str = "") -> str:
    """A ``browser_action`` as a flow map."""
    return f"{{id: {name}, type: browser_action, action: {of}{', ' + more if more else ''}}}"


def query(name: str, of: str, more: str = "") -> str:
    """A ``browser_query`` as a flow map."""
    return f"{{id: {name}, type: browser_query, query: {of}{', ' + more if more else ''}}}"


async def test_files_are_values(tmp_path: Path) -> None:
    """Downloads, screenshots and PDFs are named files of the run, listed in its result, and can be uploaded by later steps."""
    one = rig(
        tmp_path,
        action("report", "download", "target: {css: a}"),
        action("copy", "download", 'url: "http://x.test/r", save_as: "{{ report.size }} bytes"'),
        action("look", "screenshot"),
        action("paper", "pdf", "save_as: page"),
        action("both", "upload", 'target: {css: input}, files: ["{{ report }}", "{{ look.path }}"]'),
    )
    one.site.texts.update({"css=a": "a,b\n"})
    ended = await one.start()
    assert ended.status == "passed", ended.error
    assert ended.output == ["report.csv", "look.png"]
    assert [(each["name"], each["size"]) for each in ended.files] == [
        ("report.csv", 4),
        ("4 bytes", 0),
        ("look.png", 9),
        ("page.pdf", 4),
    ]
    assert one.site.actions == ["upload report.csv,look.png"]
    assert one.history.files == ended.files
    result = one.history.attempts["report"][-1].result
    assert result is not None
    assert result.files == [result.value]
    assert Path(ended.files[0]["path"]).read_text() == "a,b\n"


async def test_a_download_done_again_replaces_its_file(tmp_path: Path) -> None:
    """After a crash a repeated download replaces its own file, and no other step's file."""
    one = rig(
        tmp_path,
        action("a", "download", "target: {css: a}"),
        action("b", "download", "target: {css: b}"),
        action("go", "click", "target: {css: go}, after_crash: retry"),
        "{id: last, type: transform, expr: '{{ [a.name, b.name] }}'}",
    )

    async def die(_target: str, _page: object) -> None:
        raise KeyboardInterrupt

    one.site.before_click = die
    with pytest.raises(KeyboardInterrupt):
        await one.start()
    one.die()
    one.site.before_click = None
    ended = await one.resume()
    assert ended.output == ["report.csv", "report-2.csv"]
    assert sorted(each.name for each in (tmp_path / "files" / one.id).iterdir()) == ["report-2.csv", "report.csv"]


async def test_a_file_with_a_secret_fails_the_run(tmp_path: Path) -> None:
    """Files of steps are scanned for secrets like everything that a run writes."""
    one = rig(tmp_path, action("a", "download", "target: {css: a}"), secrets={"KEY": "hunter22"})
    one.site.texts["css=a"] = "the key is hunter22"
    ended = await one.start()
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error["code"] == "secret-leaked"
    assert "report.csv" in str(ended.error["evidence"])


async def test_a_page_that_shows_a_secret_is_not_printed(tmp_path: Path) -> None:
    """A page with a secret gives no PDF, since it cannot be masked there."""
    one = rig(
        tmp_path,
        action("f", "fill", 'target: {css: i}, value: "{{ secrets.KEY }}"'),
        action("p", "pdf"),
        secrets={"KEY": "hunter22"},
    )
    ended = await one.start()
    assert ended.error is not None
    assert ended.error["code"] == "secret-on-page"
    assert ended.files == []


async def test_a_missing_upload_fails_before_the_action(tmp_path: Path) -> None:
    """A wrong path fails before the field is touched, so a retry is possible."""
    ended = await rig(tmp_path, action("u", "upload", "target: {css: i}, files: nowhere.csv")).start()
    assert ended.error is not None
    assert (ended.error["code"], ended.error["phase"]) == ("file-not-found", "before")


async def test_keys_and_drags_keep_typed_text_pending(tmp_path: Path) -> None:
    """After a key or drag of class effect, typed text is still pending and no checkpoint is taken; after a click one is."""
    fill = action("f", "fill", "target: {css: i}, value: x")
    taken: dict[str, int] = {}
    for name, node in (
        ("press", action("d", "press", "key: Tab")),
        ("drag", action("d", "drag", "target: {css: a}, to: {css: b}")),
        ("click", action("d", "click", "target: {css: c}")),
    ):
        one = rig(tmp_path / name, fill, node, action("l", "hover", "target: {css: x}"))
        assert (await one.start()).status == "passed"
        assert one.browser is not None
        taken[name] = one.browser.captured
    assert taken == {"press": 0, "drag": 0, "click": 1}


async def test_a_key_may_open_a_tab(tmp_path: Path) -> None:
    """A press can name the tab that it opens, like a click."""
    one = rig(
        tmp_path,
        action("p", "press", "key: Enter, opens: popup"),
        action("s", "switch_tab", "tab: popup"),
        query("t", "title"),
    )
    assert (await one.start()).status == "passed"
    assert one.browser is not None
    assert "popup" in one.browser.tabs.open_ones


async def test_the_run_is_shown_with_its_files(tmp_path: Path) -> None:
    """``runops show`` lists the files, for people and programs."""
    one = rig(tmp_path, action("look", "screenshot"))
    ended = await one.start()
    report = of_run.run_report(one.history, one.store.read(one.id), one.store)
    assert [each.model_dump() for each in report.files] == ended.files
    assert f"  file  {ended.files[0]['path']}  9 bytes" in text.whole(report, text.Style())


async def test_signed_in_states(tmp_path: Path) -> None:
    """A session state is saved privately by name and loaded by another run; a missing or old one fails with its code."""
    ended = await rig(tmp_path, action("s", "load_session", "name: shop")).start()
    assert ended.error is not None
    assert (ended.error["code"], ended.error["phase"]) == ("session-not-found", "before")
    one = rig(tmp_path, action("s", "save_session", "name: shop"))
    one.site.texts["session"] = "zoe"
    saved = (await one.start()).output
    assert saved["name"] == "shop"
    file = tmp_path / "private" / "sessions" / "shop.json"
    assert file.stat().st_mode & 0o777 == 0o600
    other = rig(tmp_path, action("s", "load_session", "name: shop, max_age: 3600"))
    assert (await other.start()).output == saved
    assert other.site.texts["session"] == "zoe"
    assert "zoe" not in (tmp_path / "conversations" / f"{other.id}.jsonl").read_text()
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "saved_at": "2020-01-01T00:00:00Z"}))
    too_old = await rig(tmp_path, action("s", "load_session", "name: shop, max_age: 3600")).start()
    assert too_old.error is not None
    assert too_old.error["code"] == "session-expired"
    assert "may be 3600" in str(too_old.error["message"])
    for broken in ("{", "[]", '{"format": 99}'):
        file.write_text(broken)
        ended = await rig(tmp_path, action("s", "load_session", "name: shop")).start()
        assert ended.error is not None
        assert ended.error["code"] == "session-not-found"


async def test_tables(tmp_path: Path) -> None:
    """Rows are maps by header or by chosen typed columns; the error for an unknown column lists the existing ones."""
    grid = [["No", "Total", "Total", ""], ["1", "2.50", "3", "x"], ["2", "4", None, None]]

    async def read(more: str = "") -> events.RunEnded:
        one = rig(tmp_path, query("t", "table", f"target: {{css: table}}{more}"))
        one.site.texts["css=table"] = json.dumps(grid)
        return await one.start()

    assert (await read()).output == [
        {"No": "1", "Total": "2.50", "Total 2": "3", "4": "x"},
        {"No": "2", "Total": "4", "Total 2": None, "4": None},
    ]
    columns = ", columns: {n: {header: 1, type: integer}, sum: {header: Total, type: number}, other: Total 2}"
    assert (await read(columns)).output == [
        {"n": 1, "sum": 2.5, "other": "3"},
        {"n": 2, "sum": 4, "other": None},
    ]
    assert (await read(", columns: {n: no, other: TOTAL 2}")).output == [
        {"n": "1", "other": "3"},
        {"n": "2", "other": None},
    ]
    for column, fix in (("Totl", "did you mean `Total`?"), ("9", "correct the header")):
        error = (await read(f", columns: {{a: {column}}}")).error
        assert error is not None
        assert error["code"] == "column-not-found"
        assert error["fix"].startswith(fix)
        assert error["evidence"]["headers"] == ["No", "Total", "Total 2", "4"]
    error = (await read(", columns: {a: {header: 4, type: number}}")).error
    assert error is not None
    assert error["code"] == "value-type"
    grid = [[]]
    assert (await read(", columns: {n: Number}, min: 0")).output == []


async def test_other_queries(tmp_path: Path) -> None:
    """Attribute, state, title and observation return what the page has."""
    for node, value in (
        (query("q", "attribute", "target: {css: a}, attribute: href"), "/x"),
        (query("q", "attribute", "target: {css: a}, attribute: id"), None),
        (query("q", "state", "target: {css: a}"), {"visible": True}),
        (query("q", "title"), "A fake page"),
        (query("q", "observation", "target: {css: a}"), 'page "A fake page" about:blank\n"a link"'),
    ):
        one = rig(tmp_path, node)
        one.site.texts.update({"css=a href": "/x", "css=a": "a link"})
        assert (await one.start()).output == value


def test_headers_are_made_unique() -> None:
    """Each column has a unique name, even if a number equals a header."""
    assert headers(["a", "", "a", "2", "a"]) == ["a", "2", "a 2", "2 2", "a 3"]


@pytest.mark.parametrize(
    "keys", ["Enter", "a", "+", "Control++", "Control+Shift+K", "ControlOrMeta+A", "F12", "~", " "]
)
def test_keys_that_are_known(keys: str) -> None:
    """A key is a character or a name, with modifiers before it; several are a list."""
    assert to_keys(keys) == [keys]
    assert to_keys([keys, "a"]) == [keys, "a"]


@pytest.mark.parametrize("keys", ["", "Return", "Ctrl+A", "Control+", "ab", "A+B", "Control+Foo", "ü"])
def test_unknown_keys(keys: str) -> None:
    """Any other key is refused before it is pressed."""
    with pytest.raises(Unfit, match="has no key"):
        to_keys(keys)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (action("a", "press", "key: Return"), "has no key `Return`"),
        (action("a", "press", "key: [Enter, Return]"), "has no key `Return`"),
        (action("a", "press", "key: []"), "at least one key"),
        (action("a", "click", "target: {css: a}, at: {x: 1, y: half}"), "a percentage (`50%`) are wanted"),
        (action("a", "drag", "target: {css: a}"), "`drag` needs `to`, `by` or `path`"),
        (action("a", "drag", "to: {css: a}"), "`drag` needs `target` or `files`"),
        (action("a", "drag", "files: a.txt, by: {x: 1}"), "`files` are dropped on `to`"),
        (action("a", "drag", "target: {css: a}, by: {x: 1}, at: {x: 1, y: 1}"), "`at` is a place in `to`"),
        (action("a", "drag", "files: a.txt, to: {css: a}, from_at: {x: 1, y: 1}"), "`from_at` is a place in `target`"),
        (action("a", "drag", "files: a.txt, to: {css: a}, steps: 3"), "`steps` are moves of what is dragged"),
        (action("a", "draw", "target: {css: a}, path: [{x: 1, y: 1}]"), "path"),
        (action("a", "select_text", "target: {css: a}, text: a, from: b"), "`text` or `from`, not both"),
        (action("a", "select_text", "target: {css: a}, to: b"), "`to` goes with `from`"),
        (action("a", "scroll"), "`scroll` needs a `target`, or `to` or `by`"),
        (action("a", "scroll", "to: top, by: {y: 1}"), "`to` or `by`, not both"),
        (action("a", "download"), "`download` needs `target` or `url`"),
        (action("a", "upload", "target: {css: a}, files: []"), "at least one file"),
        (action("a", "screenshot", "target: {css: a}, full_page: true"), "`full_page` goes without `target`"),
        (action("a", "save_session", "name: ../x"), "is no name"),
        (query("a", "table", "target: {css: a}, columns: {}"), "columns"),
        (query("a", "observation", "max_chars: 3"), "max_chars"),
    ],
)
def test_mistakes_are_found_before_the_run(node: str, message: str) -> None:
    """``validate`` reports invalid combinations of options."""
    with pytest.raises(WorkflowInvalid) as invalid:
        reader.parse(f"version: 1\nnodes:\n  - {node}\n", "x.yaml")
    assert message in str([each.message for each in invalid.value.diagnostics])


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("Entre", "did you mean `Enter`?"),
        ("Cntrol+a", "did you mean `Control`?"),
        ("wait 0.5", "`hold: SECONDS` keeps each key down"),
        ("500ms", "a pause between keys is another node"),
    ],
)
def test_a_key_that_is_meant(key: str, fix: str) -> None:
    """A misspelt key names the one that is meant, and a time among the keys is told what does wait."""
    with pytest.raises(Unfit) as refused:
        to_keys(["a", key])
    assert fix in str(refused.value)


async def test_the_end_to_scroll_to_may_be_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`to` of `scroll` takes a reference; a value that is no end is refused before the page is touched."""
    ends: list[object] = []

    async def scroll(_page: FakePage, _target: Target | None, to: object, _by: object) -> dict[str, Json]:
        ends.append(to)
        return {}

    monkeypatch.setattr(FakePage, "scroll", scroll)
    for end, status in (("bottom", "passed"), ("end", "failed")):
        ended = await rig(tmp_path, action("s", "scroll", f"""to: "{{{{ '{end}' }}}}\"""")).start()
        assert ended.status == status
    assert ends == ["bottom"]
    assert ended.error is not None
    assert "`top` or `bottom` is wanted" in ended.error["message"]
