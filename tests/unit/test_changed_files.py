"""Going on with the file as it is now: what may be changed under a run, what is done again, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import UsageError
from runtime import events
from runtime.runs import answers
from runtime.settings import settings
from runtime.workspace import host
from tests.fakes import FakePage, FakeSite
from tests.now import now
from tests.rig import Killed, Rig

OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"
FAIL = "{id: stop, type: transform, expr: '{{ 1 // 0 }}'}"
GO = "{id: stop, type: transform, expr: 1}"


def flow(*nodes: str, more: str = "", output: str = "'-'") -> str:
    """A workflow file with these top-level nodes."""
    return (
        f"version: 1\nname: test\n{more}\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes) + f"output: {output}\n"
    )


def made(name: str, expr: str, more: str = "") -> str:
    """A node that makes a value."""
    return f"{{id: {name}, type: transform, expr: '{expr}'{more}}}"


def click(name: str, target: str = "", more: str = "") -> str:
    """An action that must not happen twice, and has no way to tell whether it did."""
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{target or name}'}}{more}}}"


def confirm(name: str) -> str:
    """A way to tell whether the action of that name happened."""
    look = f"{{id: look_{name}, type: browser_query, query: text, target: {{css: {name}_done}}}}"
    return f", confirm: {{settle: 0, nodes: [{look}], done: \"{{{{ look_{name} == 'yes' }}}}\"}}"


def goto(name: str, url: str) -> str:
    """A node that loads an address."""
    return f"{{id: {name}, type: browser_action, action: goto, url: 'http://shop.test/{url}'}}"


def fill(name: str, target: str) -> str:
    """A node that types its name."""
    return f"{{id: {name}, type: browser_action, action: fill, target: {{css: {target}}}, value: {name}}}"


def group(name: str, *nodes: str, more: str = "") -> str:
    """A group of nodes."""
    return f"{{id: {name}, type: group{more}, nodes: [{', '.join(nodes)}]}}"


def each(*nodes: str, more: str = "") -> str:
    """A loop over two items."""
    return f"{{id: each, type: iterate, over: [a, b], as: o, key: '{{{{ o }}}}'{more}, nodes: [{', '.join(nodes)}]}}"


async def failed(rig: Rig) -> None:
    """Start the run, and see it fail."""
    assert (await rig.start()).status == "failed"
    rig.die()


async def killed(rig: Rig, *, survives: bool = False) -> None:
    """Start the run, and have it die in the click of its site."""

    async def die(target: str, _page: FakePage) -> None:
        rig.site.texts[f"{target}_done"] = "yes"
        raise Killed

    rig.site.on_click = die
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    rig.site.on_click = None


async def refused(rig: Rig, text: str, texts: dict[str, str] | None = None) -> str:
    """See that the text is refused and nothing written; what is said."""
    before = rig.store.conversation_file(rig.id).read_bytes()
    with pytest.raises(UsageError) as caught:
        await rig.resume_changed(text, texts)
    assert caught.value.code == "node-changed"
    assert rig.store.conversation_file(rig.id).read_bytes() == before
    return caught.value.message


async def test_the_target_of_a_failed_step_may_be_fixed(tmp_path: Path) -> None:
    """The step is done as the file has it now, what is done stays done, and a later resume continues with the same text."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), click("ship", "old"), FAIL), missing={"css=old"})
    await failed(rig)
    ended = await rig.resume_changed(flow(OPEN, click("pay"), click("ship", "new"), FAIL))
    assert (ended.path, rig.site.actions) == ("stop", ["css=pay", "css=new"])
    header = rig.history.header
    assert header is not None
    assert "css: 'new'" in rig.store.blob(header.text.sha256).decode()


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ([OPEN, click("pay", "other")], "`pay`: it is done, and it is different in the file"),
        ([OPEN, click("pay", more=", when: '{{ 1 == 1 }}'")], "`pay`: it is done"),
        ([OPEN, click("pay", more=", effect: idempotent")], "`pay`: it is done"),
        ([OPEN], "`pay`: it is done, and the file no longer has such a step there"),
        ([OPEN, click("pay2", "pay")], "`pay`: it is done, and the file no longer has such a step"),
        ([OPEN, group("checkout", click("pay"))], "`pay`: it is done, and the file no longer has such a step"),
        ([OPEN, group("pay", click("pay2", "pay"))], "`pay`: it is done, and the file no longer has such a step"),
        ([goto("open", "other"), click("pay")], "`open`: it was changed, and `pay` after it is done"),
        ([click("pay")], "`open`: it is gone, and `pay` after it is done"),
        ([OPEN, goto("more", "more"), click("pay")], "`more`: it is new there, and `pay` after it is done"),
        ([click("pay"), OPEN], "it is in another place, and `pay` is done"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("happened", [True, False])
async def test_an_action_stays_what_and_where_it_was(tmp_path: Path, now: list[str], why: str, happened: bool) -> None:
    """Finished, or killed between action and answer: it is not changed, removed, renamed or moved, nor what it worked on. An action that is open may be changed where it is."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), FAIL))
    await (failed(rig) if happened else killed(rig))
    if not happened and now[1:] in ([click("pay", "other")], [click("pay", more=", effect: idempotent")]):
        assert (await rig.resume_changed(flow(*now, GO))).status == "paused"
    else:
        if not happened:
            why = why.replace("`pay`: it is done", "`pay`: it may have happened")
        said = await refused(rig, flow(*now, GO))
        assert why in said or (not happened and "`pay`: it may have happened" in said)
    assert rig.site.actions == ["css=pay"]


async def test_how_a_finished_action_is_judged_may_be_changed(tmp_path: Path) -> None:
    """Another `confirm`, `verify`, `timeout`, `retry`, `after_crash`, `on_error` or description does not change what was done."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), FAIL))
    await failed(rig)
    more = f"{confirm('pay')}, timeout: 3, retry: {{}}, after_crash: ask, on_error: continue, description: x, verify: [{{url: x}}]"
    ended = await rig.resume_changed(flow(OPEN, click("pay", more=more), GO))
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay"])


async def test_an_open_action_is_judged_by_its_node_as_it_is_now(tmp_path: Path) -> None:
    """Nobody knew, and a person was asked; the author adds a `confirm`, and the run continues without an answer."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), GO))
    await killed(rig)
    assert (await rig.resume()).status == "paused"
    rig.die()
    ended = await rig.resume_changed(flow(OPEN, click("pay", more=confirm("pay")), GO))
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay"])


@pytest.mark.parametrize(("rule", "actions"), [("new", 2), ("old", 1)])
async def test_rules_that_were_not_looked_at_before_the_action_prove_nothing(
    tmp_path: Path, rule: str, actions: int
) -> None:
    """`verify` holds on the surviving page: that proves the action only where the same rules did not hold before it."""

    def text(rule: str) -> str:
        rules = f", verify: [{{text: yes, target: {{css: {rule}}}}}], after_crash: retry"
        return flow(OPEN, click("pay", more=rules), GO)

    rig = Rig(tmp_path, text("old"), site=FakeSite(texts={"=css=new": "yes"}))
    await killed(rig, survives=True)
    rig.site.texts["=css=old"] = "yes"
    ended = await (rig.resume_changed(text(rule)) if rule == "new" else rig.resume())
    assert (ended.status, len(rig.site.actions)) == ("passed", actions)


async def test_what_finished_last_is_made_again_as_the_file_has_it_now(tmp_path: Path) -> None:
    """The last finished steps are done again, in order, with what is added to them; a decision that read them too. What finished before stays."""
    rest = [made("one", "{{ 1 }}"), made("two", "{{ one + 1 }}"), made("no", "1", ", when: '{{ two == 12 }}'")]
    rig = Rig(tmp_path, flow(made("id", "{{ uuid() }}"), *rest, FAIL))
    await failed(rig)
    ids = rig.history.attempts["id"][-1].result
    assert ids is not None
    now = [made("one", "{{ 10 }}"), made("two", "{{ one + 2 }}"), rest[2], OPEN, GO]
    ended = await rig.resume_changed(
        flow(made("id", "{{ uuid() }}"), *now, output="{a: '{{ [one, two, no | default(0), id] }}'}")
    )
    assert ended.output == {"a": [10, 12, "1", ids.value]}
    assert rig.calls("id") == ["ok"]
    assert any(isinstance(event, events.StepStarted) and event.path == "one" for event in rig.told)


INNER = "{id: two, type: iterate, over: '{{ [one] }}', as: o, nodes: [" + made("inner", "{{ o }}") + "]}"


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ([made("one", "1"), made("two", "1")], [made("one", "2"), made("two", "1")], "`one`: it was changed, and `two` after it"),
        ([made("one", "1"), made("two", "1")], [made("one", "1"), made("new", "1"), made("two", "1")], "`new`: it is new there, and `two` after it is done"),
        ([made("one", "1"), made("two", "1")], [made("two", "1"), made("one", "1")], "it is in another place"),
        ([made("one", "1"), INNER], [made("one", "2"), INNER], "`one`: it was changed, and `two[1]/inner` after it"),
        ([group("g", made("one", "1")), made("two", "{{ g }}")], [group("g", made("one", "2")), made("two", "{{ g }}")], "`g/one`: it was changed"),
        ([group("g", made("one", "1")), made("two", "{{ g }}")], [group("g", made("one", "1"), more=", value: 7"), made("two", "{{ g }}")], "`g`: its value is another one, and `two` after it is done"),
        ([each(made("one", "{{ o }}"))], [each(made("one", "{{ o }}{{ o }}"))], "`each[#a]`, which it belongs to, is over"),
        ([each(made("one", "1")), made("two", "{{ each }}")], [each(made("one", "1"), more=", limit: 1"), made("two", "{{ each }}")], "`each`: it was changed, and `two`"),
        ([each(made("one", "1")), made("two", "{{ each }}")], [each(made("one", "1"), made("new", "1")), made("two", "{{ each }}")], "`each[#a]/new`: it is new, and `each[#a]`"),
    ],
)  # fmt: skip
async def test_nothing_changes_before_a_finished_step(tmp_path: Path, before: list[str], now: list[str], why: str) -> None:  # fmt: skip
    """A step, the value of a container, what is added: where something after it is finished, the change is refused, and names both."""
    rig = Rig(tmp_path, flow(*before, FAIL))
    await failed(rig)
    assert why in await refused(rig, flow(*now, GO))


async def test_a_page_is_loaded_again_where_nothing_finished_on_it(tmp_path: Path) -> None:
    """The last address was wrong: it is loaded as the file has it now, though a checkpoint holds the page."""
    rig = Rig(tmp_path, flow(goto("open", "wrong"), click("pay", "pay")), missing={"css=pay"})
    await failed(rig)
    assert rig.history.checkpoint is not None
    rig.missing.clear()
    ended = await rig.resume_changed(flow(goto("open", "right"), click("pay"), "{id: at, type: browser_query, query: url}", output="'{{ at }}'"))  # fmt: skip
    assert (ended.status, ended.output) == ("passed", "http://shop.test/right")


@pytest.mark.parametrize("survives", [True, False])
async def test_what_was_typed_into_the_wrong_field_does_not_go_out(tmp_path: Path, survives: bool) -> None:
    """A `fill` is changed: the browser is made anew, whether or not it is still there, so the old field is empty."""
    text = flow(OPEN, fill("name", "wrong"), fill("more", "more"), click("send", "send"))
    rig = Rig(tmp_path, text, missing={"css=more"})
    await failed(rig)
    if survives:
        rig.survivor = rig.browser
    rig.missing.clear()
    ended = await rig.resume_changed(text.replace("wrong", "right"))
    assert (ended.status, rig.site.records) == ("passed", [{"css=right": "name", "css=more": "more"}])


async def test_a_reading_is_made_again_only_on_the_page_on_which_it_was_made(tmp_path: Path) -> None:
    """The page has moved on since, and the last checkpoint holds that: refused."""
    read = "{id: seen, type: browser_query, query: text, target: {css: %s}}"
    rig = Rig(tmp_path, flow(OPEN, read % "a", goto("next", "next"), made("note", "1"), FAIL))
    await failed(rig)
    said = await refused(rig, flow(OPEN, read % "b", goto("next", "next"), made("note", "1"), GO))
    assert "`seen`" in said


async def test_what_a_checkpoint_holds_is_not_taken_back(tmp_path: Path) -> None:
    """An idempotent click loaded another page, and a checkpoint was taken there: another click cannot be made where it was made."""
    submit = "{id: submit, type: browser_action, action: click, target: {css: %s}, effect: idempotent}"
    rig = Rig(tmp_path, flow(OPEN, submit % "a", FAIL))

    async def load(_target: str, page: FakePage) -> None:
        await page.goto("http://shop.test/submitted")

    rig.site.on_click = load
    await failed(rig)
    said = await refused(rig, flow(OPEN, submit % "b", GO))
    assert "`submit`: it changed the page, which cannot be undone: the last checkpoint holds it" in said


@pytest.mark.parametrize(("action", "accepted"), [(False, True), (True, False)])
async def test_a_container_goes_another_way_where_nothing_in_it_was_an_action(
    tmp_path: Path, action: bool, accepted: bool
) -> None:
    """Another condition takes another branch, another list is walked from its beginning; after an action in it both are refused."""
    inside = click("pay") if action else made("pay", "1")

    def way(when: str) -> str:
        return f"{{id: way, type: route, branches: [{{name: left, when: '{{{{ {when} }}}}', nodes: [{inside}]}}], otherwise: [{made('other', '2')}]}}"

    loop = each(inside.replace("pay", "send"), more=", limit: %s")
    rig = Rig(tmp_path, flow(OPEN, way("1 == 1"), loop % 1, FAIL))
    await failed(rig)
    now = flow(OPEN, way("1 == 2"), loop % 2, GO, output="'{{ [way, each | length] }}'")
    if accepted:
        assert (await rig.resume_changed(now)).output == ["2", 2]
    else:
        said = await refused(rig, now)
        assert "`way`: it was changed, and `each[#a]/send` after it is done" in said
        assert "`each`: it was changed, and `each[#a]/send` after it is done" in said


async def test_a_step_that_is_added_to_a_loop_runs_in_the_turns_that_are_left(tmp_path: Path) -> None:
    """The second item failed, and its author adds a step before it: the first item stays as it was."""
    rig = Rig(tmp_path, flow(OPEN, each(click("pay", "pay_{{ o }}"))), missing={"css=pay_b"})
    await failed(rig)
    rig.missing.clear()
    ended = await rig.resume_changed(flow(OPEN, each(goto("go", "{{ o }}"), click("pay", "pay_{{ o }}"))))
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay_a", "css=pay_b"])
    assert (rig.calls("each[#a]/go"), rig.calls("each[#b]/go")) == ([], ["ok"])


@pytest.mark.parametrize("finished", [True, False])
async def test_the_target_of_an_action_may_be_fixed_for_the_turns_that_are_left(tmp_path: Path, finished: bool) -> None:
    """Its element was found for the first item and not for the second: the first stays as it was. In a turn that is not finished an action that happened stays what it is."""
    then = click("ship", "ship_{{ o }}") if finished else "{id: stop, type: transform, expr: '{{ 1 // 0 }}'}"
    rig = Rig(
        tmp_path, flow(OPEN, each(click("pay", "pay_{{ o }}"), then)), missing={"css=pay_b"} if finished else set()
    )
    await failed(rig)
    rig.missing.clear()
    now = flow(OPEN, each(click("pay", "fixed_{{ o }}"), then))
    if finished:
        assert (await rig.resume_changed(now)).status == "passed"
        assert rig.site.actions == ["css=pay_a", "css=ship_a", "css=fixed_b", "css=ship_b"]
    else:
        assert "`each[#a]/pay`: it is done" in await refused(rig, now)


async def test_a_finished_turn_that_is_gone_through_again_judges_its_action(tmp_path: Path) -> None:
    """The run died before the first turn's checkpoint was taken, with its browser: the action whose target was fixed is asked about, and not done again."""
    site = FakeSite()

    async def die_at_the_second(target: str, _page: FakePage) -> None:
        site.texts[target.replace("pay", "done")] = "yes"
        if target == "css=pay_b":
            raise Killed

    site.before_click = die_at_the_second
    look = "{id: look, type: browser_query, query: text, target: {css: 'done_{{ o }}'}}"
    more = f", confirm: {{settle: 0, nodes: [{look}], done: \"{{{{ look == 'yes' }}}}\"}}"
    rig = Rig(tmp_path, flow(OPEN, each(click("pay", "pay_{{ o }}", more))), site=site)
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    for file in rig.store.private(rig.id).glob("checkpoint-*.json"):
        file.unlink()
    site.before_click = None
    ended = await rig.resume_changed(flow(OPEN, each(click("pay", "fixed_{{ o }}", more))))
    assert ended.status == "passed", ended
    assert site.actions == ["css=pay_a"]


async def test_a_step_that_was_passed_over_may_be_wanted_now(tmp_path: Path) -> None:
    """Its `when` was changed, and that of a step that failed: both count anew."""
    one, two = "{id: one, type: transform, expr: 1, when: %s}", "{id: two, type: transform, expr: '{{ 1 // 0 }}'%s}"
    rig = Rig(tmp_path, flow(one % "'{{ 1 == 2 }}'", two % ""))
    await failed(rig)
    now = flow(one % "'{{ 1 == 1 }}'", two % ", when: '{{ 1 == 2 }}'", output="\"{{ [one | default('-'), two | default('-')] }}\"")  # fmt: skip
    assert (await rig.resume_changed(now)).output == [1, "-"]


async def test_time_and_ids_of_a_changed_step_are_new(tmp_path: Path) -> None:
    """What `now()` gave the step before is no id for the one that it is now."""
    rig = Rig(tmp_path, flow(made("one", "{{ now() }}"), FAIL))
    await failed(rig)
    ended = await rig.resume_changed(flow(made("one", "{{ uuid() }}"), GO, output="'{{ one }}'"))
    assert len(str(ended.output)) == 36


async def test_questions_that_were_changed_are_asked_again(tmp_path: Path) -> None:
    """An answer to another question is none, whether or not the run has resumed it; what is asked as before is not asked again."""
    ask = "{id: %s, type: context, ask: {%s: Who?}}"
    chosen = settings.Settings(home=tmp_path)
    rig = Rig(tmp_path, flow(ask % ("first", "a"), ask % ("second", "x"), FAIL))
    for _ in range(2):
        ended = await (rig.resume() if rig.open_writer else rig.start())
        assert ended.question is not None
        rig.die()
        now(
            answers.write(
                host.of_command(chosen), rig.id, dict.fromkeys(ended.question["evidence"]["questions"], "Ada")
            )
        )
    ended = await rig.resume_changed(flow(ask % ("first", "b"), ask % ("second", "y"), GO))
    for name in "by":
        assert ended.question is not None
        assert list(ended.question["evidence"]["questions"]) == [name]
        rig.die()
        now(answers.write(host.of_command(chosen), rig.id, {name: "Bob"}))
        ended = await rig.resume()
    assert ended.status == "passed"


async def test_inputs_follow_the_file(tmp_path: Path) -> None:
    """A new input has its default, or is refused; one that is gone is dropped; another default does not change what the run was given."""
    head = "inputs: {a: {type: string, default: x}, gone: {type: string, default: y}}"
    rig = Rig(tmp_path, flow(made("one", "{{ inputs.a }}"), FAIL, more=head), inputs={"a": "mine", "gone": "y"})
    await failed(rig)
    with pytest.raises(UsageError, match="needs `must`, which the run was not given") as caught:
        await rig.resume_changed(flow(made("one", "{{ inputs.a }}"), GO, more="inputs: {a: {type: string}, must: {type: string}}"))  # fmt: skip
    assert caught.value.code == "missing-input"
    number = flow(made("one", "{{ inputs.a }}"), GO, more="inputs: {a: {type: list}}")
    rig.inputs = {"a": "mine"}
    with pytest.raises(UsageError) as caught:
        await rig.resume_changed(number)
    assert caught.value.code == "input-type"
    now = "inputs: {a: {type: string, default: z}, more: {type: integer, default: 3}}"
    ended = await rig.resume_changed(flow(made("one", "{{ inputs.a }}"), GO, more=now, output="'{{ one }}{{ inputs.more }}'"))  # fmt: skip
    header = rig.history.header
    assert header is not None
    assert (ended.output, header.inputs) == ("mine3", {"a": "mine", "more": 3})


async def test_an_input_that_is_read_as_something_else_is_another(tmp_path: Path) -> None:
    """The text "12" is a number under the new type, and a finished step has read the text."""
    rig = Rig(
        tmp_path, flow(made("one", "{{ inputs.a }}"), FAIL, more="inputs: {a: {type: string}}"), inputs={"a": "12"}
    )
    await failed(rig)
    said = await refused(rig, flow(made("one", "{{ inputs.a }}"), GO, more="inputs: {a: {type: integer}}"))
    assert "`one`: it is done, and the input `a` has another value" in said


async def test_files_that_are_used_follow_too(tmp_path: Path) -> None:
    """In a file that is still at work what did not finish may be changed; in one that is over nothing that ran."""
    part = flow(made("inner", "{{ inputs.n }}"), "%s", more="inputs: {n: {type: integer, default: 1}}", output="'{{ inner }}'")  # fmt: skip
    text = flow("{id: first, type: group, use: a.yaml}", "{id: second, type: group, use: b.yaml}", output="'{{ second }}'")  # fmt: skip
    rig = Rig(tmp_path, text, texts={"a.yaml": part % GO, "b.yaml": part % FAIL})
    await failed(rig)
    over = {"a.yaml": part.replace("{{ inputs.n }}", "2") % GO, "b.yaml": part % GO}
    assert "`first/inner`: it was changed, and `first`, which it belongs to, is over" in await refused(rig, text, over)
    other = {"a.yaml": part % GO, "b.yaml": part.replace("default: 1", "default: 2") % GO}
    ended = await rig.resume_changed(text, other)
    assert ended.output == 2


async def test_killed_after_it_took_the_file_it_goes_on_with_it(tmp_path: Path) -> None:
    """The note is the first thing that is written: whoever continues has the new text, and the browser is still made anew."""
    text = flow(OPEN, fill("name", "wrong"), fill("more", "more"), click("send", "send"))
    rig = Rig(tmp_path, text, missing={"css=more"})
    await failed(rig)
    rig.missing.clear()

    async def die(_target: str, _page: FakePage) -> None:
        raise Killed

    rig.site.before_click = die
    with pytest.raises(Killed):
        await rig.resume_changed(text.replace("wrong", "right").replace("'send'}", "'send'}, after_crash: retry"))
    rig.die()
    rig.site.before_click = None
    assert (await rig.resume()).status == "passed"
    assert rig.site.records == [{"css=right": "name", "css=more": "more"}]
