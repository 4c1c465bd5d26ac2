"""The table of step states: a run that reaches a step does exactly what its row says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import SiteError
from nodes.part import EffectClass
from nodes.pointer import PLAIN, Stroke
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
    """A page whose site records each access to the step, and which dies or refuses where the test says so."""

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
    async def hover(self, target: Target, how: Stroke = PLAIN) -> None:
        await self._strike("hover", target)

    @override
    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        await self._strike("click", target)
        self.browser.site.texts["=css=step"] = "there"

    @override
    async def holds(self, rule: Rule) -> bool:
        return self.browser.site.texts.get("=css=step") == "there"


def text_of(effect: EffectClass, word: Configured, state: State) -> str:
    """A workflow with the step as configured; to be undone it is in a group, so that no checkpoint follows it."""
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
    """Brings the step into ``state``, and leaves its run dead."""
    Page.acted, Page.dies_at, Page.refuses = [], "", ""
    if state is State.FRESH:
        return rig
    Page.dies_at = {State.OPEN: "css=step", State.DONE: "css=end", State.UNDONE: "css=end"}.get(state, "")
    Page.refuses = {State.FAILED_BEFORE: "before", State.FAILED_AFTER: "after", State.VOID: "before"}.get(state, "")
    if state is State.FAILED_AFTER:
        # A `confirm` would have settled it during the run, so the author adds it afterwards.
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
    """The expected pair for these answers of the site: the step is attempted, and a person is asked."""
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
    """For every result of `verify` and `confirm` the step is attempted, skipped or asked about as its row says."""
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
            details = (verify, confirm, ended.error, ended.question)
            assert (bool(Page.acted), ended.status) == (acts, "paused" if asks else "passed"), details
            rig.die()


def test_every_state_has_a_row_for_every_effect_class() -> None:
    """The table has a row for every state, effect class and configuration."""
    for state in State:
        for effect in ("read", "idempotent"):
            assert (state, effect, Configured.NOTHING) in step_states.TABLE
        for confirm in (False, True):
            for after_crash in (None, "confirm", "retry", "skip", "ask"):
                for on_redo in (None, "confirm", "redo", "ask"):
                    word = step_states.configured(state, confirm=confirm, after_crash=after_crash, on_redo=on_redo)
                    assert (state, "effect", word) in step_states.TABLE


def test_only_steps_known_not_to_have_acted_are_simply_done() -> None:
    """A side effect that may have happened is repeated only where the author configured it or the site denies it."""
    words = (Configured.RETRY, Configured.CONFIRM_RETRY, Configured.REDO)
    for (state, effect, word), then in step_states.TABLE.items():
        if effect == "effect" and state in step_states.TO_RECONCILE and Then.ACT in then:
            assert word in words
        assert then[-1] in (Then.TAKE, Then.ACT, Then.SKIP, Then.ASK)
