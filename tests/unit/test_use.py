"""A group that runs another workflow file: a separate scope, one unit, and no action twice, wherever the process dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import SiteError
from runtime import events
from tests.fakes import FakeBrowser, FakePage, FakeSite
from tests.rig import Killed, Rig

SHOP, BANK = "https://shop.test", "https://bank.test"


def flow(*nodes: str, more: str = "name: n") -> str:
    """A workflow file."""
    return f"version: 1\n{more}\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes)


def use(name: str, file: str, more: str = "") -> str:
    """A node that uses a file."""
    return f"{{id: {name}, type: group, use: {file}{more}}}"


def say(name: str, expression: str) -> str:
    """A node that yields a value."""
    return f'{{id: {name}, type: transform, expr: "{expression}"}}'


def action(name: str, more: str = "") -> str:
    """A click that must not happen twice, with a `confirm` that can verify it."""
    confirm = (
        f"{{settle: 0, nodes: [{{id: look_{name}, type: browser_query, query: text, target: {{css: {name}_done}}}}],"
        f" done: \"{{{{ look_{name} == 'yes' }}}}\"}}"
    )
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: {name}}}, confirm: {confirm}{more}}}"


def goto(name: str, url: str) -> str:
    """A node that loads an address."""
    return f"{{id: {name}, type: browser_action, action: goto, url: '{url}'}}"


async def do_it(target: str, page: FakePage) -> None:
    """The site carries the action out, and can confirm it."""
    page.browser.site.texts[f"{target}_done"] = "yes"


def killing(target: str, *, before: bool) -> FakeSite:
    """A site on which the process dies at a click, before it or after the site carried it out."""

    async def die_before(clicked: str, _page: FakePage) -> None:
        if clicked == target and before:
            raise Killed

    async def die_after(clicked: str, page: FakePage) -> None:
        await do_it(clicked, page)
        if clicked == target:
            raise Killed

    return FakeSite(before_click=die_before, on_click=die_after)


async def test_a_file_sees_only_what_it_is_given_and_shows_only_its_output(tmp_path: Path) -> None:
    """A used file has separate ids, variables and errors, and typed inputs with defaults. Files nest; the group's value is the file's output."""
    inner = flow(say("a", "inner"), more="inputs: {n: {type: integer}}") + 'output: "{{ inputs.n + 1 }}"\n'
    part = (
        flow(
            "{id: set, type: context, set: {v: part}}",
            use("a", "inner.yaml", ", with: {n: '{{ inputs.n }}'}"),
            "{id: bad, type: transform, expr: '{{ 1 / 0 }}', on_error: continue}",
            more="inputs: {n: {type: integer}, word: {type: string, default: hello}}",
        )
        + 'output: {a: "{{ a }}", word: "{{ inputs.word }}", v: "{{ vars.v }}", wrong: "{{ run.errors.bad.code | default(none) }}"}\n'
    )
    text = (
        flow(
            "{id: set, type: context, set: {v: mine}}",
            say("a", "{{ 40 + 1 }}"),
            use("part", "parts/part.yaml", ", with: {n: '{{ a }}'}"),
            use("again", "parts/part.yaml", ", with: {n: 1, word: you}, value: kept"),
        )
        + 'output: {part: "{{ part }}", again: "{{ again }}", a: "{{ a }}", v: "{{ vars.v }}", errors: "{{ run.errors }}"}\n'
    )
    rig = Rig(tmp_path, text, texts={"parts/part.yaml": part, "parts/inner.yaml": inner})
    ended = await rig.start()
    assert ended.status == "passed", ended
    assert ended.output == {
        "part": {"a": 42, "word": "hello", "v": "part", "wrong": "expression-failed"},
        "again": "kept",
        "a": 41,
        "v": "mine",
        "errors": {},
    }
    assert {"part", "part/set", "part/a", "part/a/a", "again/a/a"} <= set(rig.history.order)
    given = rig.history.scopes["again"].decided
    assert given is not None
    assert given.value == {"n": 1, "word": "you"}


async def test_a_value_of_another_kind_is_the_authors_mistake(tmp_path: Path) -> None:
    """An input of the wrong type fails at the group before any step of the file, and `on_error: continue` applies."""
    part = flow(say("a", "a"), more="inputs: {n: {type: integer}}")
    bad = use("part", "part.yaml", ", with: {n: '{{ word }}'}, on_error: continue")
    text = flow(say("word", "five"), bad) + 'output: "{{ run.errors.part.message | default(none) }}"\n'
    rig = Rig(tmp_path, text, texts={"part.yaml": part})
    ended = await rig.start()
    assert ended.output == "`with.n` must be a whole number, and is text"
    assert "part/a" not in rig.history.attempts


async def test_an_error_has_the_path_through_the_group(tmp_path: Path) -> None:
    """The path of a failing step or output begins with the group that uses the file."""
    part = flow(say("a", "{{ 1 / inputs.n }}"), more="inputs: {n: {type: integer}}") + 'output: "{{ a / (a - 1) }}"\n'
    for n, path in ((0, "part/a"), (1, "part/output")):
        rig = Rig(tmp_path, flow(use("part", "part.yaml", f", with: {{n: {n}}}")), texts={"part.yaml": part})
        ended = await rig.start()
        assert (ended.status, ended.path) == ("failed", path)


async def test_a_file_gets_no_secret_but_those_it_is_given(tmp_path: Path) -> None:
    """A used file can fill the secrets it declares and is given; their values are masked in the log."""
    fill = "{id: fill, type: browser_action, action: fill, target: {css: p}, value: '{{ secrets.WORD }}'}"
    part = flow(fill, action("send"), more="secrets: [WORD]")
    text = flow(use("part", "part.yaml", ", secrets: [WORD]"), more="secrets: [OTHER, WORD]")
    known = {"OTHER": "not-for-you", "WORD": "open-sesame"}
    rig = Rig(tmp_path, text, texts={"part.yaml": part}, secrets=known, site=FakeSite(on_click=do_it))
    assert (await rig.start()).status == "passed"
    assert rig.site.records == [{"css=p": "open-sesame"}]
    program = rig.loaded.callees["part"].workflow
    assert program.secrets == ["WORD"]
    log = rig.store.conversation_file(rig.id).read_bytes()
    assert b"open-sesame" not in log
    assert b"{{ secrets.WORD }}" in log


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("place", ["css=one", "css=two", "css=three"])
async def test_no_action_of_a_file_is_done_twice(tmp_path: Path, place: str, *, before: bool, survives: bool) -> None:
    """After a kill before or after any action, with or without the browser, each action happens once and the output is right."""
    inner = flow(say("x", "{{ inputs.n }}"), action("two"), more="inputs: {n: {type: integer}}") + "output: '{{ x }}'\n"
    part = flow(action("one"), use("inner", "inner.yaml", ", with: {n: 7}"), more="on_redo: confirm")
    part += "output: '{{ inner + 1 }}'\n"
    text = flow(goto("open", SHOP), use("part", "part.yaml"), action("three")) + "output: '{{ part }}'\n"
    rig = Rig(tmp_path, text, texts={"part.yaml": part, "inner.yaml": inner}, site=killing(place, before=before))
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    rig.site.before_click, rig.site.on_click = None, do_it
    ended = await rig.resume()
    assert (ended.status, ended.output) == ("passed", 8), ended
    assert rig.site.actions == ["css=one", "css=two", "css=three"]


async def test_a_finished_file_is_not_replayed(tmp_path: Path) -> None:
    """The end of a file is a commit point: a resumed run takes its value from the log and replays none of its steps."""
    part = flow(goto("open", SHOP), action("one"), say("word", "done")) + "output: '{{ word }}'\n"
    text = flow(use("part", "part.yaml"), action("two")) + "output: '{{ part }}'\n"
    rig = Rig(tmp_path, text, texts={"part.yaml": part}, site=killing("css=two", before=True))
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    rig.site.before_click, rig.site.on_click = None, do_it
    ended = await rig.resume()
    assert (ended.status, ended.output) == ("passed", "done")
    assert rig.site.actions == ["css=one", "css=two"]
    assert not [each for each in rig.told if isinstance(each, events.StepFinished) and each.path.startswith("part/")]


async def test_a_files_variables_stay_its_own_in_a_resumed_loop(tmp_path: Path) -> None:
    """A resumed loop restores the variables of finished items, and not those of a used file."""
    part = flow("{id: set, type: context, set: {v: part}}") + "output: '{{ vars.v }}'\n"
    loop = (
        f"{{id: each, type: iterate, over: [1, 2], as: n, nodes: ["
        f"{{id: mine, type: context, set: {{v: 'mine {{{{ n }}}}'}}}}, {use('part', 'part.yaml')}, {action('pay')}]}}"
    )
    text = flow("{id: start, type: context, set: {v: none}}", loop, action("last")) + "output: '{{ vars.v }}'\n"
    rig = Rig(tmp_path, text, texts={"part.yaml": part}, site=killing("css=last", before=True))
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    rig.site.before_click, rig.site.on_click = None, do_it
    ended = await rig.resume()
    assert (ended.status, ended.output) == ("passed", "mine 2"), ended


async def test_on_redo_is_looked_up_from_the_step_outwards(tmp_path: Path) -> None:
    """`on_redo` of the file precedes that of its group, and that precedes the caller's; it decides between repeating and asking."""
    click = "{id: pay, type: browser_action, action: click, target: {css: pay}}"
    for in_part, in_group, in_flow, asked in (
        ("redo", "ask", "ask", False),
        ("ask", "redo", "redo", True),
        (None, "redo", "ask", False),
        (None, None, "redo", False),
        (None, None, None, True),
    ):
        part = flow(click, say("a", "a"), action("last"), more=f"on_redo: {in_part}" if in_part else "name: p")
        group = use("part", "part.yaml", f", on_redo: {in_group}" if in_group else "")
        text = flow(goto("open", SHOP), group, say("b", "b"), more=f"on_redo: {in_flow}" if in_flow else "name: f")
        rig = Rig(tmp_path, text, texts={"part.yaml": part}, site=killing("css=last", before=True))
        with pytest.raises(Killed):
            await rig.start()
        rig.die()
        rig.site.before_click, rig.site.on_click = None, do_it
        ended = await rig.resume()
        assert ended.status == ("paused" if asked else "passed"), (in_part, in_group, in_flow, ended)
        assert rig.site.actions.count("css=pay") == (1 if asked else 2)


async def test_a_file_loads_documents_only_where_both_files_allow_it(tmp_path: Path) -> None:
    """Each step may load only origins that its file and all files that use it allow; the caller's next step is free again."""
    seen: dict[str, list[str] | None] = {}

    async def note(target: str, page: FakePage) -> None:
        seen[target] = page.browser.confined

    click = "{{id: {0}, type: browser_action, action: click, target: {{css: {0}}}}}".format
    inner = flow(click("c"), more=f"allowed_origins: ['{BANK}', 'https://other.test']")
    free = flow(click("f"))
    part = flow(click("b"), use("inner", "inner.yaml"), use("free", "free.yaml"), more=f"allowed_origins: ['{BANK}']")
    more = f"allowed_origins: ['{SHOP}', '{BANK}']"
    text = flow(click("a"), use("part", "part.yaml"), use("free", "free.yaml"), click("d"), more=more)
    texts = {"part.yaml": part, "inner.yaml": inner, "free.yaml": free}
    rig = Rig(tmp_path, text, texts=texts, site=FakeSite(on_click=note))
    assert (await rig.start()).status == "passed"
    assert seen == {"css=a": None, "css=b": [BANK], "css=c": [BANK], "css=f": None, "css=d": None}


async def test_an_invalid_origin_of_a_file_fails_its_group(tmp_path: Path) -> None:
    """The file's `allowed_origins` are evaluated with its inputs when it is used; an invalid one is an author error at the group."""
    part = flow(say("a", "a"), more="inputs: {u: {type: string}}\nallowed_origins: ['{{ inputs.u }}']")
    rig = Rig(tmp_path, flow(use("part", "part.yaml", ", with: {u: nowhere}")), texts={"part.yaml": part})
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.exit, ended.path, ended.error["code"], ended.error["who"]) == (1, "part", "bad-origin", "author")


async def test_confirm_of_a_file_has_its_inputs_and_origins(tmp_path: Path) -> None:
    """After a crash a `confirm` in a file has the file's inputs and is confined as the file's steps are."""
    seen: list[list[str] | None] = []

    class Watched(FakePage):
        async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
            assert isinstance(self.browser, FakeBrowser)
            seen.append(self.browser.confined)
            return await super().goto(url, anew=anew, once=once)

    look = "{id: look, type: browser_action, action: goto, url: '{{ inputs.at }}'}"
    confirm = f"confirm: {{settle: 0, nodes: [{look}], done: true}}"
    pay = f"{{id: pay, type: browser_action, action: click, target: {{css: pay}}, {confirm}}}"
    part = flow(pay, more="inputs: {at: {type: string}}")
    text = flow(use("part", "part.yaml", f", with: {{at: '{BANK}/1'}}"), more=f"allowed_origins: ['{SHOP}', '{BANK}']")
    site = killing("css=pay", before=False)
    site.page = Watched
    rig = Rig(tmp_path, text, texts={"part.yaml": part}, site=site)
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    assert (await rig.resume()).status == "passed"
    assert (rig.site.actions, seen) == (["css=pay"], [[BANK]])


async def test_a_tolerated_group_is_not_repeated(tmp_path: Path) -> None:
    """A resumed run keeps the error of a tolerated group and continues after it."""
    part = flow(action("one"), action("two"))
    tolerated = use("part", "part.yaml", ", on_error: continue")
    text = flow(tolerated, action("three")) + "output: '{{ run.errors.part.code | default(none) }}'\n"
    rig = Rig(tmp_path, text, texts={"part.yaml": part}, site=killing("css=three", before=True))

    async def fail_second(target: str, _page: FakePage) -> None:
        if target == "css=two":
            raise SiteError("target-hidden", "it is hidden", phase="before")
        if target == "css=three":
            raise Killed

    rig.site.before_click = fail_second
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    rig.site.before_click, rig.site.on_click = None, do_it
    ended = await rig.resume()
    assert (ended.status, ended.tolerated) == ("passed", 1)
    assert rig.site.actions == ["css=one", "css=three"]


async def test_a_file_that_is_tried_again_does_no_action_twice(tmp_path: Path) -> None:
    """A `handle` repeats the file with its inputs; an action done in the first try is confirmed and not repeated."""
    part = flow(action("one"), action("two"), more="inputs: {n: {type: integer}}") + "output: '{{ inputs.n }}'\n"
    tried = use("part", "part.yaml", ", with: {n: 5}")
    text = flow(f"{{id: h, type: handle, attempts: 2, try: [{tried}]}}") + "output: '{{ h }}'\n"
    rig = Rig(tmp_path, text, texts={"part.yaml": part})
    failures = ["css=two"]

    async def fail_once(target: str, page: FakePage) -> None:
        if target in failures:
            failures.remove(target)
            raise SiteError("target-hidden", "it is hidden", phase="before")
        await do_it(target, page)

    rig.site.before_click = fail_once
    ended = await rig.start()
    assert (ended.status, ended.output) == ("passed", 5), ended
    assert rig.site.actions == ["css=one", "css=two"]
