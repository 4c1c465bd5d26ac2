"""The table of states: a run that reaches a step does what its row says, and nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import SiteError
from nodes.part import EffectClass
from nodes.rules import Rule
from nodes.targets import Target
from runtime.log import step_states
from runtime.log.step_states import Configured, State, Then
from runtime.workspace import run_index
from tests.fakes import FakePage, FakeSite
from tests.now import let_go, now
from tests.rig import Killed, Rig

LOOK = "{id: look, type: browser_query, query: text, target: {css: state}}"
STEPS: dict[EffectClass, str] = {
    "read": "type: browser_query, query: text, target: {css: step}",
    "idempotent": "type: browser_action, action: hover, target: {css: step}, effect: idempotent",
    "effect": "type: browser_action, action: click, target: {css: step}, verify: [{text: there, target: {css: step}}]",
}
CONFIRM = f"confirm: {{settle: 0, nodes: [{LOOK}], done: \"{{{{ look == 'yes' }}}}\"}}"


class Page(FakePage):
    """A page whose site counts every look at the step and everything done at it, and dies or refuses where the test says so."""

    dies_at = ""
    refuses = ""
    acted: list[str]

    async def _strike(self, what: str, target: Target) -> None:
        if str(target) not in ("css=step", "css=end"):
            return
        if Page.refuses == "before" and str(target) == "css=step":
            raise SiteError("target-not-found", "no such element", phase="before")
        if str(target) == "css=step":
            Page.acted.append(what)
        if Page.dies_at == str(target):
            raise Killed
        if Page.refuses == "after" and str(target) == "css=step":
            raise SiteError("target-not-actionable", "odd", phase="after")

    @override
    async def text(self, target: Target) -> str:
        if str(target) in ("css=step", "css=end"):
            await self._strike("read", target)
            return "a text"
        return await super().text(target)

    @override
    async def hover(self, target: Target) -> None:
        await self._strike("hover", target)

    @override
    async def click(self, target: Target) -> None:
        await self._strike("click", target)
        self.browser.site.texts["=css=step"] = "there"

    @override
    async def holds(self, rule: Rule) -> bool:
        return self.browser.site.texts.get("=css=step") == "there"


def text_of(effect: EffectClass, word: Configured, state: State) -> str:
    """A workflow with the step, as the author configured it: in a group where it is to be undone, so that no checkpoint lies after it."""
    parts = [STEPS[effect]]
    for each in word.value.split(", "):
        if each in {"confirm", "on_redo: confirm"}:
            parts.append(CONFIRM)
        elif each.startswith("after_crash"):
            parts.append(each)
    on_redo = word.value if word.value.startswith("on_redo") else ""
    step, end = f"{{id: step, {', '.join(parts)}}}", "{id: end, type: browser_query, query: text, target: {css: end}}"
    open_ = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"
    go = open_.replace("id: open", "id: go")
    nodes = [open_, step, go, end]
    if state is State.UNDONE:
        nodes = [open_, f"{{id: all, type: group, {on_redo + ', ' if on_redo else ''}nodes: [{step}, {go}, {end}]}}"]
    return "version: 1\nname: test\nnodes:\n" + "".join(f"  - {each}\n" for each in nodes)


async def in_state(rig: Rig, state: State, effect: EffectClass, word: Configured) -> Rig:
    """Bring the step into ``state``; its run is dead then."""
    Page.acted, Page.dies_at, Page.refuses = [], "", ""
    if state is State.FRESH:
        return rig
    Page.dies_at = {State.OPEN: "css=step", State.DONE: "css=end", State.UNDONE: "css=end"}.get(state, "")
    Page.refuses = {State.FAILED_BEFORE: "before", State.FAILED_AFTER: "after", State.VOID: "before"}.get(state, "")
    if state is State.FAILED_AFTER:
        # With a `confirm` the run would have found out by itself: the author added it afterwards.
        rig = dataclasses.replace(rig, text=text_of(effect, Configured.NOTHING, state))
    if Page.dies_at:
        with pytest.raises(Killed):
            await rig.start()
    else:
        assert (await rig.start()).status == "failed"
    Page.dies_at = Page.refuses = ""
    rig.die(browser_survives=state in (State.OPEN, State.DONE))
    Page.acted.clear()
    return rig


def expected(then: tuple[Then, ...], *, verify: bool, confirm: str) -> tuple[bool, bool]:
    """Whether the step is attempted, and whether a person is asked, where the site says this."""
    for each in then:
        if each is Then.ACT:
            return True, False
        if each in (Then.TAKE, Then.SKIP) or (each is Then.VERIFY and verify):
            return False, False
        if each is Then.ASK:
            return False, True
        if each is Then.CONFIRM and confirm != "error":
            return confirm == "no", False
    raise AssertionError(f"{then} says nothing at the end")


@pytest.mark.parametrize("row", step_states.TABLE, ids=" ".join)
async def test_a_run_does_what_the_row_says(tmp_path: Path, row: step_states.Row) -> None:
    """Whatever `verify` and `confirm` say of the step, it is attempted, passed over or asked about as its row of the table says."""
    state, effect, word = row
    number = 0
    for verify in (False, True) if Then.VERIFY in step_states.TABLE[row] else (False,):
        for confirm in ("yes", "no", "error") if Then.CONFIRM in step_states.TABLE[row] else ("no",):
            number += 1
            rig = Rig(tmp_path / str(number), text_of(effect, word, state), site=FakeSite(page=Page))
            rig = await in_state(rig, state, effect, word)
            rig.site.texts["=css=step"] = "there" if verify else "not there"
            rig.site.texts["css=state"] = confirm
            attached = state is State.OPEN
            if state is State.FRESH:
                ended = await rig.start()
            elif state is State.FAILED_AFTER:
                rig.missing.update({"css=state"} if confirm == "error" else ())
                ended = await rig.resume_changed(text_of(effect, word, state))
            elif state is State.VOID:
                writer = now(run_index.claim(rig.keeper, rig.id, rig.masker))
                header = rig.history.header
                assert header is not None
                taken = {name: getattr(header, name) for name in ("workflow", "inputs", "secrets", "origins")}
                shown = {"text": header.text.model_dump(), "callees": {}, **taken}
                writer.note("changed", taken=shown, invalidated=["step"], edited=[], reopened=[], rebuild=False)
                let_go(writer.conversation)
                assert rig.history.attempts["step"][-1].state is State.VOID
                ended = await rig.resume()
            else:
                if confirm == "error":
                    rig.missing.add("css=state")
                    if rig.survivor is not None:
                        rig.survivor.missing.add("css=state")
                ended = await rig.resume()
            acts, asks = expected(step_states.TABLE[row], verify=verify and attached, confirm=confirm)
            told = (verify, confirm, ended.error, ended.question)
            assert (bool(Page.acted), ended.status) == (acts, "paused" if asks else "passed"), told
            rig.die()


def test_every_state_has_a_row_for_every_effect_class() -> None:
    """No state of a step is left without an answer, whatever its effect class and whatever the author configured."""
    for state in State:
        for effect in ("read", "idempotent"):
            assert (state, effect, Configured.NOTHING) in step_states.TABLE
        for confirm in (False, True):
            for after_crash in (None, "confirm", "retry", "skip", "ask"):
                for on_redo in (None, "confirm", "redo", "ask"):
                    word = step_states.configured(state, confirm=confirm, after_crash=after_crash, on_redo=on_redo)
                    assert (state, "effect", word) in step_states.TABLE


def test_only_what_is_known_not_to_have_acted_is_simply_done() -> None:
    """A side effect that may have happened is attempted again only where the author's own word says so, or the site denies it."""
    words = (Configured.RETRY, Configured.CONFIRM_RETRY, Configured.REDO)
    for (state, effect, word), then in step_states.TABLE.items():
        if effect == "effect" and state in step_states.TO_RECONCILE and Then.ACT in then:
            assert word in words
        assert then[-1] in (Then.TAKE, Then.ACT, Then.SKIP, Then.ASK)
