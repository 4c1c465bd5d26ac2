"""Session state: versions with number, reason and author; cleared variables have no value; no secret is stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from director.draft import draft as drafts
from director.draft.goal import Goal
from director.session import person, state_paths, variables
from director.session import plan as plans
from director.session.state import SessionState
from director.tools import begin
from nodes.errors import ModelError
from runtime.log import entries, session
from runtime.secrets import masking
from runtime.testing import memory_store
from tests.build_contexts import Answering
from tests.sessions import begun, state_of

SECRET = "tops3cret-word"
KNOWN = {"SHOP_PASSWORD": SECRET}
HEAD = "version: 1\nname: Sums\n"
PLAN = plans.of({"overall_goal": "g", "phases": [{"phase_name": "A", "tasks": [{"task_id": "t", "description": "d"}]}]})


class Leaving(person.Person):
    """A person whose process ends while the question is open."""

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        raise RuntimeError


def read(state: SessionState, path: str) -> str:
    """What a path leads to."""
    return state_paths.of_session(state, path, state.writer) or ""


def versions(state: SessionState, of: str, name: str = "") -> list[tuple[int, str, str, bool]]:
    """The number, reason, author and cleared flag of each version."""
    return [(each.number, each.reason, each.by, bool(each.cleared)) for each in state.history.versions(of, name)]


def test_every_change_is_a_version_with_its_reason(tmp_path: Path) -> None:
    """Plan, description, draft and variables are numbered separately, and the last version is current."""
    state = state_of(tmp_path)
    assert (state.plan, state.description, state.draft, state.variables.all()) == (None, "", None, {})
    state.set_plan(PLAN, reason="a first plan")
    patched = state.patch_task("t", status="completed", notes="ok", reason="it is done")
    state.describe("Pay all.", reason="so said")
    state.describe("Pay all but one.", reason="one is disputed")
    draft = drafts.Draft.begun(HEAD, "- {id: one, type: transform, expr: 1}")
    state.write_draft(draft, reason="the first node")
    state.variables.set("order", {"number": 7}, reason="needed later")
    assert state.plan == patched
    assert [each.status for each in patched.tasks()] == ["completed"]
    assert state.description == "Pay all but one."
    assert state.draft == draft
    assert state.variables.all() == {"order": {"number": 7}}
    assert versions(state, "plan") == [(1, "a first plan", "model", False), (2, "it is done", "model", False)]
    assert versions(state, "description")[0] == (1, "so said", "model", False)
    assert versions(state, "variable", "order") == [(1, "needed later", "model", False)]


def test_session_state_is_restored_from_the_log(tmp_path: Path) -> None:
    """A session state over the same log in another process has the same plan, description, draft and variables."""
    store = memory_store.MemoryStore(tmp_path)
    writer = begun(tmp_path, store=store)
    first = SessionState(writer)
    first.set_plan(PLAN, reason="r")
    first.describe("Pay " + "all " * 3000, reason="r")
    first.write_draft(drafts.Draft.begun(HEAD, "- {id: one, type: transform, expr: 1}"), reason="r")
    first.variables.set("rows", ["x" * 9000], reason="r")
    fold = session.Session(store.reader.read(writer.conversation.id).entries)
    again = SessionState(type(writer)(writer.conversation, fold, writer.masker, store.reader))
    assert again.plan == PLAN
    assert again.description == first.description
    assert again.draft is not None
    assert again.draft.outline() == "  1 one  transform"
    assert again.variables.all() == {"rows": ["x" * 9000]}


def test_a_cleared_variable_has_no_value_and_may_have_one_again(tmp_path: Path) -> None:
    """Clearing is a separate version with its reason; clearing all clears each variable that has a value."""
    state = state_of(tmp_path)
    for name in ("a", "b", "c"):
        state.variables.set(name, name, reason="r")
    state.variables.clear("b", reason="not needed")
    assert state.variables.names() == ["a", "c"]
    with pytest.raises(ModelError):
        state.variables.get("b")
    assert state.variables.clear_all(reason="begin anew") == ["a", "c"]
    assert state.variables.all() == {}
    state.variables.set("b", 2, reason="after all")
    assert state.variables.all() == {"b": 2}
    assert versions(state, "variable", "b") == [
        (1, "r", "model", False),
        (2, "not needed", "model", True),
        (3, "after all", "model", False),
    ]


def test_null_is_a_value_and_not_a_cleared_one(tmp_path: Path) -> None:
    """A variable that was set to null has a value."""
    state = state_of(tmp_path)
    state.variables.set("nothing", None, reason="r")
    assert state.variables.all() == {"nothing": None}


def test_no_secret_is_stored(tmp_path: Path) -> None:
    """A variable or a draft that contains a secret is refused, with the way to give one; in a description or a reason it is masked."""
    state = state_of(tmp_path, KNOWN)
    with pytest.raises(ModelError) as caught:
        state.variables.set("password", {"deep": [f"it is {SECRET}"]}, reason="r")
    assert caught.value.code == "secret-refused"
    assert "/goal --secret NAME" in str(caught.value.fix)
    node = f"- {{id: pass, type: browser_action, action: fill, target: {{label: Password}}, value: {SECRET}}}"
    with pytest.raises(ModelError) as caught:
        state.write_draft(drafts.Draft.begun(f"{HEAD}allowed_origins: ['http://127.0.0.1']", node), reason="r")
    assert caught.value.code == "secret-refused"
    state.describe(f"Sign in with {SECRET}.", reason=f"{SECRET} was told")
    assert state.description == f"Sign in with {masking.MASK}."
    assert versions(state, "description")[0][1] == f"{masking.MASK} was told"
    assert state.variables.names() == []
    assert state.draft is None


def test_a_change_without_a_reason_is_refused(tmp_path: Path) -> None:
    """A blank reason is refused, and nothing is written."""
    state = state_of(tmp_path)
    with pytest.raises(ModelError) as caught:
        state.describe("Pay all.", reason="  ")
    assert caught.value.code == "reason-missing"
    assert state.history.versions("description") == []


def test_a_task_is_patched_only_where_there_is_a_plan(tmp_path: Path) -> None:
    """Without a plan, and with an unknown task, nothing is written."""
    state = state_of(tmp_path)
    with pytest.raises(ModelError) as caught:
        state.patch_task("t", status="completed", reason="r")
    assert caught.value.code == "plan-missing"
    state.set_plan(PLAN, reason="r")
    with pytest.raises(ModelError) as caught:
        state.patch_task("tt", status="completed", reason="r")
    assert caught.value.code == "task-unknown"
    assert len(state.history.versions("plan")) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("a b", 1), ("", 1), ("1a", 1), ("a" * 81, 1), ("n", float("nan")), ("n", "x" * (1 << 20))]
)
def test_an_invalid_variable_is_refused_with_a_fix(tmp_path: Path, name: str, value: Any) -> None:
    """A bad name, a value that is no JSON, and a value that is too large are refused with a fix."""
    state = state_of(tmp_path)
    with pytest.raises(ModelError) as caught:
        state.variables.set(name, value, reason="r")
    assert caught.value.code == "variable-invalid"
    assert caught.value.fix
    assert state.variables.names() == []


def test_an_unknown_variable_gets_a_suggestion(tmp_path: Path) -> None:
    """An unknown name is refused with the nearest name, or else with all that have a value."""
    state = state_of(tmp_path)
    state.variables.set("order_number", 1, reason="r")
    with pytest.raises(ModelError) as caught:
        state.variables.get("order_numbr")
    assert (caught.value.code, caught.value.fix) == ("variable-unknown", "did you mean `order_number`?")
    with pytest.raises(ModelError) as caught:
        state.variables.clear("zzz", reason="r")
    assert caught.value.fix == "these have a value: order_number"


def test_values_are_shown_by_the_rules_of_display() -> None:
    """Long values are cut at 100 characters, a longer list shows its first item and count, and a masked value stays masked."""
    values = {
        "a": "x" * 98,
        "b": "x" * 200,
        "c": [],
        "d": [{"n": 1}, {"n": "x" * 90}],
        "f": [1, 2],
        "secrets.e": masking.MASK,
    }
    shown = list(variables.render(values))
    assert shown[0] == f'a = "{"x" * 98}"'
    assert shown[1].endswith("x…")
    assert len(shown[1]) == len("b = ") + 100
    assert shown[2:] == ["c = [] (empty)", 'd = [{"n": 1}, …] (2)', "f = [1, 2]", f'secrets.e = "{masking.MASK}"']


def test_the_recent_nodes_are_those_that_were_written_last(tmp_path: Path) -> None:
    """The newest nodes come first, over several versions; a deleted node is not among them."""
    state = state_of(tmp_path)
    draft = drafts.Draft.begun(HEAD, "- {id: n0, type: transform, expr: 0}")
    state.write_draft(draft, reason="r")
    for number in range(1, 15):
        draft = draft.with_nodes(f"- {{id: n{number}, type: transform, expr: {number}}}")
        state.write_draft(draft, reason="r")
    assert state.recent_nodes() == [f"n{number}" for number in range(14, 4, -1)]
    state.write_draft(drafts.Draft.of(draft.text.replace("expr: 3}", "expr: 33}")), reason="r")
    assert state.recent_nodes()[:2] == ["n3", "n14"]
    without = "\n".join(line for line in draft.text.splitlines() if "n14" not in line)
    state.write_draft(drafts.Draft.of(without), reason="r")
    assert "n14" not in state.recent_nodes()


def test_a_version_never_changes(tmp_path: Path) -> None:
    """Earlier versions stay in the log unchanged."""
    state = state_of(tmp_path)
    state.describe("one", reason="r")
    state.describe("two", reason="r")
    assert [each.value for each in state.history.versions("description")] == ["one", "two"]


@pytest.mark.anyio
async def test_an_answered_question_is_listed_in_short_and_stands_whole_at_its_line(tmp_path: Path) -> None:
    """`@state/said` cuts a long question behind its answer; `@state/line/N` of that line has it whole."""
    state = state_of(tmp_path)
    question = "May it be pressed?\n" + "It pays order 1001. " * 40
    await person.Remembering(state.writer, Answering("yes")).ask(question)
    (line,) = re.findall(r"^line (\d+)  .*  answered: yes$", read(state, "@state/said"), re.MULTILINE)
    assert question.strip() not in read(state, "@state/said")
    assert f"answered: yes\nto: {question}" in read(state, f"@state/line/{line}")
    assert "not answered" not in read(state, "@state/said")
    with pytest.raises(RuntimeError):
        await person.Remembering(state.writer, Leaving()).ask("And this one?")
    assert re.search(r"→ \S+ \S+  asked, and not answered: And this one\?", read(state, "@state/said"))


def test_what_is_built_has_its_versions(tmp_path: Path) -> None:
    """`@state/goal/N` has a goal as it was given, but for values that are hidden by their names."""
    state = state_of(tmp_path)
    inputs = {"order": "7", "password": "hunter22"}
    goal = Goal("Pay it.", "http://127.0.0.1:9/", tmp_path / "pay.yaml", inputs=inputs)
    begin.keep_goal(state, goal, reason="said so", by="person")
    assert "`@state/goal/1`  " in read(state, "@state/goal")
    told = read(state, "@state/goal/1")
    assert "goal: Pay it.\nurl: http://127.0.0.1:9/" in told
    assert '"order": "7"' in told
    assert "hunter22" not in told


def test_what_was_said_meanwhile_is_listed_once_and_says_so(tmp_path: Path) -> None:
    """`@state/said` has a message that came while the model worked at the moment when it was said, and not again where the model has it."""
    state = state_of(tmp_path)
    state.writer.said(entries.Heard(thread=entries.SESSION_THREAD, mode="chat"), "In euro?", "")
    heard = state.history.last_seq
    state.writer.said(entries.User(thread=entries.SESSION_THREAD, mode="chat", heard=heard), "In euro?", "")
    state.writer.said(entries.User(thread=entries.SESSION_THREAD, mode="chat"), "And now?", "")
    told = read(state, "@state/said")
    assert re.findall(r"^line (\d+)  \S+ \S+  (.+)$", told, re.MULTILINE) == [
        (str(heard), "(while the work went on)  In euro?"),
        (str(heard + 2), "And now?"),
    ]
