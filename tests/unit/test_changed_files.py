"""Resuming with a changed file: what may change, what is done again, and what is refused."""

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
    """A node that computes a value."""
    return f"{{id: {name}, type: transform, expr: '{expr}'{more}}}"


def click(name: str, target: str = "", more: str = "") -> str:
    """An action that must not happen twice, without `confirm`."""
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{target or name}'}}{more}}}"


def confirm(name: str) -> str:
    """A `confirm` for the action of that name."""
    look = f"{{id: look_{name}, type: browser_query, query: text, target: {{css: {name}_done}}}}"
    return f", confirm: {{settle: 0, nodes: [{look}], done: \"{{{{ look_{name} == 'yes' }}}}\"}}"


def goto(name: str, url: str) -> str:
    """A node that loads an address."""
    return f"{{id: {name}, type: browser_action, action: goto, url: 'http://shop.test/{url}'}}"


def fill(name: str, target: str) -> str:
    """A node that fills a field with its own name."""
    return f"{{id: {name}, type: browser_action, action: fill, target: {{css: {target}}}, value: {name}}}"


def group(name: str, *nodes: str, more: str = "") -> str:
    """A group of nodes."""
    return f"{{id: {name}, type: group{more}, nodes: [{', '.join(nodes)}]}}"


def each(*nodes: str, more: str = "") -> str:
    """A loop over two items."""
    return f"{{id: each, type: iterate, over: [a, b], as: o, key: '{{{{ o }}}}'{more}, nodes: [{', '.join(nodes)}]}}"


async def failed(rig: Rig) -> None:
    """Starts the run, which fails."""
    assert (await rig.start()).status == "failed"
    rig.die()


async def killed(rig: Rig, *, survives: bool = False) -> None:
    """Starts the run, which dies in a click."""

    async def die(target: str, _page: FakePage) -> None:
        rig.site.texts[f"{target}_done"] = "yes"
        raise Killed

    rig.site.on_click = die
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    rig.site.on_click = None


async def refused(rig: Rig, text: str, texts: dict[str, str] | None = None) -> str:
    """Checks that the text is refused and nothing is written, and returns the message."""
    before = rig.store.conversation_file(rig.id).read_bytes()
    with pytest.raises(UsageError) as caught:
        await rig.resume_changed(text, texts)
    assert caught.value.code == "node-changed"
    assert rig.store.conversation_file(rig.id).read_bytes() == before
    return caught.value.message


async def test_the_target_of_a_failed_step_may_be_fixed(tmp_path: Path) -> None:
    """The failed step runs as changed, finished steps stay, and later resumes use the same text."""
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
async def test_an_action_cannot_be_changed_or_moved(tmp_path: Path, now: list[str], why: str, happened: bool) -> None:
    """A finished action and the steps before it cannot be changed, removed, renamed or moved; an open one may change in place."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), FAIL))
    await (failed(rig) if happened else killed(rig))
    if not happened and now[1:] in ([click("pay", "other")], [click("pay", more=", effect: idempotent")]):
        assert (await rig.resume_changed(flow(*now, GO))).status == "paused"
    else:
        if not happened:
            why = why.replace("`pay`: it is done", "`pay`: it may have happened")
        message = await refused(rig, flow(*now, GO))
        assert why in message or (not happened and "`pay`: it may have happened" in message)
    assert rig.site.actions == ["css=pay"]


async def test_the_checks_of_a_finished_action_may_change(tmp_path: Path) -> None:
    """`confirm`, `verify`, `timeout`, `retry`, `after_crash`, `on_error` and description may change."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), FAIL))
    await failed(rig)
    more = f"{confirm('pay')}, timeout: 3, retry: {{}}, after_crash: ask, on_error: continue, description: x, verify: [{{url: x}}]"
    ended = await rig.resume_changed(flow(OPEN, click("pay", more=more), GO))
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay"])


async def test_an_open_action_uses_the_confirm_of_the_changed_file(tmp_path: Path) -> None:
    """A run paused for an unknown outcome continues without an answer once its author adds `confirm`."""
    rig = Rig(tmp_path, flow(OPEN, click("pay"), GO))
    await killed(rig)
    assert (await rig.resume()).status == "paused"
    rig.die()
    ended = await rig.resume_changed(flow(OPEN, click("pay", more=confirm("pay")), GO))
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay"])


@pytest.mark.parametrize(("rule", "actions"), [("new", 2), ("old", 1)])
async def test_rules_not_checked_before_the_action_prove_nothing(tmp_path: Path, rule: str, actions: int) -> None:
    """`verify` on the surviving page proves the action only if the same rules were false before it."""

    def text(rule: str) -> str:
        rules = f", verify: [{{text: yes, target: {{css: {rule}}}}}], after_crash: retry"
        return flow(OPEN, click("pay", more=rules), GO)

    rig = Rig(tmp_path, text("old"), site=FakeSite(texts={"=css=new": "yes"}))
    await killed(rig, survives=True)
    rig.site.texts["=css=old"] = "yes"
    ended = await (rig.resume_changed(text(rule)) if rule == "new" else rig.resume())
    assert (ended.status, len(rig.site.actions)) == ("passed", actions)


async def test_the_last_finished_steps_run_again_as_changed(tmp_path: Path) -> None:
    """The changed last steps, those that read them, and added steps run again in order; earlier ones stay."""
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
    """A changed step, container value or addition before a finished step is refused, and the error names both."""
    rig = Rig(tmp_path, flow(*before, FAIL))
    await failed(rig)
    assert why in await refused(rig, flow(*now, GO))


async def test_a_page_is_loaded_again_where_nothing_finished_on_it(tmp_path: Path) -> None:
    """A changed address is loaded again if no step finished on its page, even though a checkpoint has that page."""
    rig = Rig(tmp_path, flow(goto("open", "wrong"), click("pay", "pay")), missing={"css=pay"})
    await failed(rig)
    assert rig.history.checkpoint is not None
    rig.missing.clear()
    ended = await rig.resume_changed(flow(goto("open", "right"), click("pay"), "{id: at, type: browser_query, query: url}", output="'{{ at }}'"))  # fmt: skip
    assert (ended.status, ended.output) == ("passed", "http://shop.test/right")


@pytest.mark.parametrize("survives", [True, False])
async def test_text_typed_into_the_wrong_field_is_not_sent(tmp_path: Path, survives: bool) -> None:
    """A changed `fill` rebuilds the browser, even a surviving one, so the old field is empty."""
    text = flow(OPEN, fill("name", "wrong"), fill("more", "more"), click("send", "send"))
    rig = Rig(tmp_path, text, missing={"css=more"})
    await failed(rig)
    if survives:
        rig.survivor = rig.browser
    rig.missing.clear()
    ended = await rig.resume_changed(text.replace("wrong", "right"))
    assert (ended.status, rig.site.records) == ("passed", [{"css=right": "name", "css=more": "more"}])


async def test_a_query_runs_again_only_on_its_own_page(tmp_path: Path) -> None:
    """A changed query is refused if the last checkpoint is of a later page."""
    read = "{id: seen, type: browser_query, query: text, target: {css: %s}}"
    rig = Rig(tmp_path, flow(OPEN, read % "a", goto("next", "next"), made("note", "1"), FAIL))
    await failed(rig)
    message = await refused(rig, flow(OPEN, read % "b", goto("next", "next"), made("note", "1"), GO))
    assert "`seen`" in message


async def test_a_checkpoint_cannot_be_undone(tmp_path: Path) -> None:
    """A changed idempotent click is refused if a checkpoint was taken on the page after it."""
    submit = "{id: submit, type: browser_action, action: click, target: {css: %s}, effect: idempotent}"
    rig = Rig(tmp_path, flow(OPEN, submit % "a", FAIL))

    async def load(_target: str, page: FakePage) -> None:
        await page.goto("http://shop.test/submitted")

    rig.site.on_click = load
    await failed(rig)
    message = await refused(rig, flow(OPEN, submit % "b", GO))
    assert "`submit`: it changed the page, which cannot be undone: the last checkpoint holds it" in message


@pytest.mark.parametrize(("action", "accepted"), [(False, True), (True, False)])
async def test_a_container_without_actions_may_be_redone(tmp_path: Path, action: bool, accepted: bool) -> None:
    """A changed condition takes another branch and a changed list restarts, unless an action in the container is done."""
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
        message = await refused(rig, now)
        assert "`way`: it was changed, and `each[#a]/send` after it is done" in message
        assert "`each`: it was changed, and `each[#a]/send` after it is done" in message


async def test_a_step_added_to_a_loop_runs_in_the_remaining_iterations(tmp_path: Path) -> None:
    """A step added after the second item failed runs for that item, and the first one stays."""
    rig = Rig(tmp_path, flow(OPEN, each(click("pay", "pay_{{ o }}"))), missing={"css=pay_b"})
    await failed(rig)
    rig.missing.clear()
    ended = await rig.resume_changed(flow(OPEN, each(goto("go", "{{ o }}"), click("pay", "pay_{{ o }}"))))
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay_a", "css=pay_b"])
    assert (rig.calls("each[#a]/go"), rig.calls("each[#b]/go")) == ([], ["ok"])


@pytest.mark.parametrize("finished", [True, False])
async def test_an_action_may_be_fixed_for_the_remaining_iterations(tmp_path: Path, finished: bool) -> None:
    """A target fixed for the second item leaves the first. In an unfinished iteration a finished action cannot change."""
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


async def test_a_replayed_iteration_confirms_its_action(tmp_path: Path) -> None:
    """If an iteration is replayed without its checkpoint, `confirm` checks its changed action, which is not repeated."""
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


async def test_a_changed_when_is_evaluated_again(tmp_path: Path) -> None:
    """A changed `when` is evaluated again for a skipped and for a failed step."""
    one, two = "{id: one, type: transform, expr: 1, when: %s}", "{id: two, type: transform, expr: '{{ 1 // 0 }}'%s}"
    rig = Rig(tmp_path, flow(one % "'{{ 1 == 2 }}'", two % ""))
    await failed(rig)
    now = flow(one % "'{{ 1 == 1 }}'", two % ", when: '{{ 1 == 2 }}'", output="\"{{ [one | default('-'), two | default('-')] }}\"")  # fmt: skip
    assert (await rig.resume_changed(now)).output == [1, "-"]


async def test_time_and_ids_of_a_changed_step_are_new(tmp_path: Path) -> None:
    """The recorded `now()` of a step is not reused as the `uuid()` of its changed version."""
    rig = Rig(tmp_path, flow(made("one", "{{ now() }}"), FAIL))
    await failed(rig)
    ended = await rig.resume_changed(flow(made("one", "{{ uuid() }}"), GO, output="'{{ one }}'"))
    assert len(str(ended.output)) == 36


async def test_questions_that_were_changed_are_asked_again(tmp_path: Path) -> None:
    """An answer to a changed question does not count; unchanged questions are not asked again."""
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
    """A new input needs a default, a removed one is dropped, and a changed default keeps the given value."""
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


async def test_an_input_with_another_type_is_changed(tmp_path: Path) -> None:
    """The text "12" becomes a number under the new type, but a finished step has read the text."""
    rig = Rig(
        tmp_path, flow(made("one", "{{ inputs.a }}"), FAIL, more="inputs: {a: {type: string}}"), inputs={"a": "12"}
    )
    await failed(rig)
    message = await refused(rig, flow(made("one", "{{ inputs.a }}"), GO, more="inputs: {a: {type: integer}}"))
    assert "`one`: it is done, and the input `a` has another value" in message


async def test_used_files_may_change_too(tmp_path: Path) -> None:
    """In an unfinished used file unfinished steps may change; in a finished one, no step that ran."""
    part = flow(made("inner", "{{ inputs.n }}"), "%s", more="inputs: {n: {type: integer, default: 1}}", output="'{{ inner }}'")  # fmt: skip
    text = flow("{id: first, type: group, use: a.yaml}", "{id: second, type: group, use: b.yaml}", output="'{{ second }}'")  # fmt: skip
    rig = Rig(tmp_path, text, texts={"a.yaml": part % GO, "b.yaml": part % FAIL})
    await failed(rig)
    over = {"a.yaml": part.replace("{{ inputs.n }}", "2") % GO, "b.yaml": part % GO}
    assert "`first/inner`: it was changed, and `first`, which it belongs to, is over" in await refused(rig, text, over)
    other = {"a.yaml": part % GO, "b.yaml": part.replace("default: 1", "default: 2") % GO}
    ended = await rig.resume_changed(text, other)
    assert ended.output == 2


async def test_a_crash_after_accepting_the_file_resumes_with_it(tmp_path: Path) -> None:
    """The change is logged first, so the next resume has the new text and still rebuilds the browser."""
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
