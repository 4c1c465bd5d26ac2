"""Side effects in a build: asked for exactly, performed, or withheld."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from director.draft import draft
from director.draft.goal import Policy
from director.editing import lint
from director.effects import effects, grants, requests, wording
from director.proving import notes
from director.session import person
from nodes.errors import Paused, UsageError
from runtime.language import callees
from tests import benches, build_contexts
from tests.fakes import FakeSite
from tests.holding import SITE, TEXT, asking, click, edited, holds, leaf

pytestmark = pytest.mark.anyio


async def test_a_pending_question_keeps_its_text(tmp_path: Path) -> None:
    """Without a person the session pauses, and a resume asks the same question, whatever page is open then."""
    build = build_contexts.opened(tmp_path, SITE, TEXT, policy="ask", who=person.Nobody())
    wanted = [(leaf(build, "pay"), "each[1]/pay")]
    with pytest.raises(Paused) as first:
        await build.effects.demand(wanted, place="1_execute_nodes", page=f"{SITE}/one")
    with pytest.raises(Paused) as second:
        await build.effects.demand(wanted, place="1_execute_nodes", page=f"{SITE}/two")
    assert first.value.message == second.value.message


async def test_each_action_of_a_scout_is_asked_for(tmp_path: Path) -> None:
    """An approved action of a scout is asked for again when it is wanted again."""
    build, asked = asking(tmp_path, "yes", "no")
    first = await build.effects.demand([(click(), "click")], place="3_send_scout/1_debug_action")
    again = await build.effects.demand([(click(), "click")], place="3_send_scout/2_debug_action")
    assert (first(click(), "click"), again(click(), "click"), len(asked)) == (False, True, 2)


@pytest.mark.parametrize(
    ("policy", "site", "withheld"), [("allow", SITE, False), ("hold", SITE, True), ("allow", "https://shop.test", True)]
)
async def test_a_policy_asks_no_person(tmp_path: Path, policy: Policy, site: str, withheld: bool) -> None:
    """The policies allow and hold ask no question, and allow covers only sites on this machine."""
    build, asked = asking(tmp_path, policy=policy, text=TEXT.replace(SITE, site))
    found = await holds(build)
    assert (found(leaf(build, "pay"), "each[1]/pay"), asked) == (withheld, [])


@pytest.mark.parametrize(
    ("address", "action"),
    [
        ("JavaScript:pay()", True),
        ("java\tscript:fetch('http://127.0.0.1:8765/pay')", True),
        ("data:text/html,<form method=post action=http://127.0.0.1:8765/pay></form><script>document.forms[0].submit()</script>", True),
        ("HTTP://127.0.0.1:8765/orders", False),
        ("about:blank", False),
    ],
)  # fmt: skip
async def test_a_script_in_an_address_is_an_action(tmp_path: Path, address: str, action: bool) -> None:
    """An address that may be a script, also one filled in from an input, is withheld like a click; other addresses are not."""
    for written in (address, "{{ inputs.who }}"):
        text = TEXT.replace('url: "{{ inputs.base_url }}/orders"', f"url: {json.dumps(written)}")
        build, _asked = asking(tmp_path / written[:2], policy="hold", text=text)
        withheld, node = await holds(build), leaf(build, "open")
        assert withheld(node.model_copy(update={"url": address}), "open") is action


@pytest.mark.parametrize(
    ("how", "action"),
    [
        ("target: {role: button, name: Export}", True),
        ("target: {css: a.file}", True),
        ("target: {any_of: [{role: link, name: File}, {text: File}]}", True),
        ("target: {role: button, name: Export}, effect: idempotent", False),
        ("target: {role: link, name: File}", False),
        ('url: "{{ inputs.base_url }}/file"', False),
        ('url: "{{ inputs.base_url }}/file", effect: effect', True),
    ],
)
async def test_a_download_by_anything_but_a_link_is_an_action(tmp_path: Path, how: str, action: bool) -> None:
    """A download by a button may send a form: it is withheld, with a hint unless the draft declares `effect`. Links and addresses are not."""
    text = TEXT.replace("action: press, key: Enter", f"action: download, {how}")
    build, _asked = asking(tmp_path, policy="hold", text=text)
    assert (await holds(build))(leaf(build, "note"), "note") is action
    assert build.state.draft is not None
    hints = [each.node for each in lint.effects(build.state.draft) if each.code == "download-by-click"]
    assert hints == (["note"] if action and "effect:" not in how else [])


@pytest.mark.parametrize(("effect", "action"), [("", False), (", effect: read", False), (", effect: effect", True)])
async def test_the_click_that_continues_a_list_is_a_click_of_class_read(
    tmp_path: Path, effect: str, action: bool
) -> None:
    """`next` is governed as a click with `effect: read` on its target: trusted, and listed in the notes, unless the draft calls it an *effect*."""
    turns = "query: extract, target: {css: li}, fields: {no: b}, key: no, next: {role: button, name: Pay}"
    clicks = "type: browser_action, action: click, target: {role: button, name: Pay}"
    for node in (f"type: browser_query, {turns}{effect}", f"{clicks}{effect or ', effect: read'}"):
        text = TEXT.replace("type: browser_action, action: press, key: Enter", node)
        build, asked = asking(tmp_path / node[:24], policy="hold", text=text)
        assert (await holds(build))(leaf(build, "note"), "note") is action
        page = notes.page(build, tmp_path / "x.yaml", "It pays.", "runops run x.yaml")
        assert ("`note` counts as no action" in page) is not action
        assert not asked


async def test_a_typed_line_break_is_the_key_enter(tmp_path: Path) -> None:
    """A typed line break may send a form, so it is asked for and approved with its references resolved. `effect: idempotent` avoids the question."""
    typing = 'type: browser_action, action: type, target: {label: Find}, value: "{{ inputs.who }}\\n"'
    build, asked = asking(
        tmp_path, "yes", "no", "no", text=TEXT.replace("type: browser_action, action: press, key: Enter", typing)
    )
    build.effects = grants.Grants(build.writer, build.state, build.person)
    wanted = leaf(build, "note")
    withheld = await build.effects.demand([(wanted, "note")], place="1_run_draft")
    assert not withheld(wanted, "note")
    assert not withheld(wanted.model_copy(update={"value": "Ann\n"}), "note")
    assert withheld(wanted.model_copy(update={"value": "Ann\n", "delay": 5}), "note")
    assert len(asked) == 1
    edited(build, "action: type,", "action: type, effect: idempotent,")
    free = await build.effects.demand([(leaf(build, "note"), "note")], place="2_run_draft")
    assert not free(leaf(build, "note"), "note")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("said", "node"),
    [
        ("javascript:pay('http://127.0.0.1:8765')", 'action: goto, url: "{{ said }}"'),
        ("Ann\\n", 'action: type, target: {text: user}, value: "{{ said }}"'),
    ],
)
async def test_a_value_that_makes_an_action_is_withheld(tmp_path: Path, said: str, node: str) -> None:
    """A value that turns an address into a script, or a text into one with a line break, is withheld; harmless values are not."""
    text = f"""
  - {{id: said, type: transform, expr: "{said}"}}
  - {{id: does, type: browser_action, {node}}}
"""
    rig = benches.Rig(tmp_path, text, FakeSite(), policy="hold")
    assert await rig.execute("all") == {"said": "ok", "does": "held"}
    assert rig.bench.opened[0].page.filled == {}
    rig.edit(said, "http://127.0.0.1:8765/")
    assert await rig.execute("all") == {"said": "ok", "does": "ok"}


async def test_a_secret_is_in_no_question(tmp_path: Path) -> None:
    """A question shows secrets of the action as references, and masks them elsewhere."""
    person = build_contexts.Answering("no", "no", "no")
    text = TEXT.replace("Pay for", "Pay tops3cret-word")
    build = build_contexts.opened(tmp_path, SITE, None, policy="ask", who=person, known={"WORD": "tops3cret-word"})
    loaded = draft.Draft.of(text).loaded
    await grants.Grants(build.writer, build.state, build.person).demand(effects.actions_of(loaded), place="1_run_draft")
    assert person.asked
    assert not any("tops3cret" in each for each in person.asked)


@pytest.mark.parametrize(
    ("origins", "fits"),
    [
        ((SITE, "http://localhost:1", "http://[::1]:5", "http://127.8.8.8"), True),
        ((SITE, "https://shop.test"), False),
        (("http://127.0.0.1.shop.test",), False),
        (("http://localhost.shop.test",), False),
        ((), False),
    ],
)
def test_everything_is_allowed_on_this_machine_only(origins: Sequence[str], fits: bool) -> None:
    """The policy allow needs at least one site, and all of them on this machine."""
    if fits:
        grants.refuse_allow(origins)
        return
    with pytest.raises(UsageError, match="on this machine only"):
        grants.refuse_allow(origins)


def test_paths_of_steps_find_their_actions() -> None:
    """An action has one key wherever it is: in a loop, a branch, a try, or a used file."""
    files = {"in.yaml": "version: 1\nnodes:\n- {id: go, type: browser_action, action: click, target: {text: Go}}\n"}
    text = textwrap.dedent("""
        version: 1
        nodes:
          - id: all
            type: iterate
            over: [1]
            as: it
            nodes:
              - {id: used, type: group, use: in.yaml}
              - id: safe
                type: handle
                try: [{id: go, type: browser_action, action: press, key: Enter}]
                catch: [{id: back, type: browser_action, action: press, key: Escape}]
    """)
    loaded = draft.Draft.of(text, callees.Texts(files)).loaded
    assert [key for _leaf, key in effects.actions_of(loaded)] == ["used/go", "go", "back"]
    paths = {"all[2]/used/go": "used/go", "all[#x%2Fy]/safe/try[2]/go": "go", "all[1]/safe/catch/back": "back"}
    assert {path: effects.key_of(loaded, path) for path in paths} == paths


def test_a_used_file_continues_on_the_page_of_its_user() -> None:
    """The user's earlier steps belong to an action in a used file that opens no page. Later actions of the user list the used file."""
    files = {"in.yaml": "version: 1\nnodes:\n- {id: go, type: browser_action, action: click, target: {text: Go}}\n"}
    text = textwrap.dedent("""
        version: 1
        nodes:
          - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1/x"}
          - {id: amount, type: browser_action, action: fill, target: {label: Amount}, value: "10"}
          - {id: used, type: group, use: in.yaml}
          - {id: send, type: browser_action, action: click, target: {text: Send}}
    """)
    loaded = draft.Draft.of(text, callees.Texts(files)).loaded
    found = [requests.action(loaded, each, path, {}, {}) for each, path in effects.actions_of(loaded)]
    assert [(each.opened, wording.steps(each)) for each in found] == [
        ("http://127.0.0.1/x", ['fill field "Amount" "10"']),
        ("http://127.0.0.1/x", ['fill field "Amount" "10"', "use in.yaml"]),
    ]


def test_a_sign_in_directly_follows_a_password() -> None:
    """A click that sends the form with a secret may be a sign-in; a later click on the same page may not."""
    text = textwrap.dedent("""
        version: 1
        secrets: [WORD]
        allowed_origins: []
        nodes:
          - {id: early, type: browser_action, action: click, target: {text: Go}}
          - {id: word, type: browser_action, action: fill, target: {label: Word}, value: "{{ secrets.WORD }}"}
          - {id: stay, type: browser_action, action: check, target: {label: Remember me}}
          - {id: submit, type: browser_action, action: click, target: {text: Sign in}}
          - {id: pay, type: browser_action, action: click, target: {text: Pay}}
    """)
    loaded = draft.Draft.of(text).loaded
    assert [each.id for each in loaded.nodes() if effects.only_signs_in(loaded, each.id)] == ["stay", "submit"]


def test_what_a_confirm_repeats_is_no_step_of_the_workflow() -> None:
    """Nodes of a `confirm` are no leaves that a run must reach, at any depth."""
    text = """version: 1
nodes:
  - id: pay
    type: browser_action
    action: click
    target: {text: Pay}
    verify: [{text: paid}]
    confirm:
      nodes:
        - {id: look, type: browser_action, action: goto, url: "http://127.0.0.1:8765/orders"}
        - id: again
          type: handle
          attempts: 3
          try:
            - {id: menu, type: browser_action, action: click, target: {text: Menu}, effect: read}
            - {id: state, type: browser_query, query: text, target: {text: state}}
      done: "{{ state == 'paid' }}"
"""
    loaded = draft.Draft.of(text, callees.Texts({})).loaded
    assert [key for _leaf, key in effects.leaves_of(loaded)] == ["pay"]
