"""What a build may do of class *effect*: asked for as it is, done, or held."""

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
from director.session import person
from nodes.errors import Paused, UsageError
from runtime.language import callees
from tests import benches, build_contexts
from tests.fakes import FakeSite
from tests.holding import SITE, TEXT, asking, click, edited, holds, leaf

pytestmark = pytest.mark.anyio


async def test_a_question_waits_in_its_own_words(tmp_path: Path) -> None:
    """Where nobody is there the session pauses, and asks the same again when it continues, whatever page is looked at by then."""
    build = build_contexts.opened(tmp_path, SITE, TEXT, policy="ask", who=person.Nobody())
    wanted = [(leaf(build, "pay"), "each[1]/pay")]
    with pytest.raises(Paused) as first:
        await build.effects.demand(wanted, place="1_execute_nodes", page=f"{SITE}/one")
    with pytest.raises(Paused) as second:
        await build.effects.demand(wanted, place="1_execute_nodes", page=f"{SITE}/two")
    assert first.value.message == second.value.message


async def test_scouting_is_asked_for_each_time(tmp_path: Path) -> None:
    """An action of scouting that was allowed once is asked for when it is wanted again."""
    build, asked = asking(tmp_path, "yes", "no")
    first = await build.effects.demand([(click(), "click")], place="3_send_scout/1_debug_action")
    again = await build.effects.demand([(click(), "click")], place="3_send_scout/2_debug_action")
    assert (first(click(), "click"), again(click(), "click"), len(asked)) == (False, True, 2)


@pytest.mark.parametrize(
    ("policy", "site", "held"), [("allow", SITE, False), ("hold", SITE, True), ("allow", "https://shop.test", True)]
)
async def test_a_policy_asks_nobody(tmp_path: Path, policy: Policy, site: str, held: bool) -> None:
    """Where all is allowed, or all held, nobody is asked; and of a site that is not on this machine nothing is allowed in that way."""
    build, asked = asking(tmp_path, policy=policy, text=TEXT.replace(SITE, site))
    found = await holds(build)
    assert (found(leaf(build, "pay"), "each[1]/pay"), asked) == (held, [])


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
    """What is no address of a site may be a script, and do anything: it is held like a click, though opening an address is not; also filled in."""
    for written in (address, "{{ inputs.who }}"):
        text = TEXT.replace('url: "{{ inputs.base_url }}/orders"', f"url: {json.dumps(written)}")
        build, _asked = asking(tmp_path / written[:2], policy="hold", text=text)
        held, node = await holds(build), leaf(build, "open")
        assert held(node.model_copy(update={"url": address}), "open") is action


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
async def test_a_download_by_what_may_be_no_link_is_an_action(tmp_path: Path, how: str, action: bool) -> None:
    """A button that gives a file may send a form: it is held, and the draft is told so, unless the draft says what it is; a link and an address are not."""
    text = TEXT.replace("action: press, key: Enter", f"action: download, {how}")
    build, _asked = asking(tmp_path, policy="hold", text=text)
    assert (await holds(build))(leaf(build, "note"), "note") is action
    assert build.state.draft is not None
    hints = [each.node for each in lint.effects(build.state.draft) if each.code == "download-by-click"]
    assert hints == (["note"] if action and "effect:" not in how else [])


async def test_a_line_break_that_is_typed_is_a_key(tmp_path: Path) -> None:
    """Typed, a line break is the key Enter, which may send a form: asked for, and done with its references filled in; where the file says that it is none, nobody is asked."""
    typing = 'type: browser_action, action: type, target: {label: Find}, value: "{{ inputs.who }}\\n"'
    build, asked = asking(
        tmp_path, "yes", "no", "no", text=TEXT.replace("type: browser_action, action: press, key: Enter", typing)
    )
    build.effects = grants.Grants(build.writer, build.state, build.goal, build.person)
    wanted = leaf(build, "note")
    held = await build.effects.demand([(wanted, "note")], place="1_run_draft")
    assert not held(wanted, "note")
    assert not held(wanted.model_copy(update={"value": "Ann\n"}), "note")
    assert held(wanted.model_copy(update={"value": "Ann\n", "delay": 5}), "note")
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
async def test_what_becomes_an_action_once_it_is_filled_in_is_held(tmp_path: Path, said: str, node: str) -> None:
    """A script that an address turns out to be, and a line break that a text turns out to hold, are held, and with harmless values they are not."""
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
    """An action is shown with its secrets as references, and what else holds one is masked."""
    who = build_contexts.Answering("no", "no", "no")
    text = TEXT.replace("Pay for", "Pay tops3cret-word")
    build = build_contexts.opened(tmp_path, SITE, None, policy="ask", who=who, known={"WORD": "tops3cret-word"})
    loaded = draft.Draft.of(text).loaded
    await grants.Grants(build.writer, build.state, build.goal, build.person).demand(
        effects.actions_of(loaded), place="1_run_draft"
    )
    assert who.asked
    assert not any("tops3cret" in each for each in who.asked)


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
    """All actions at once are allowed where every site is known to be on this machine."""
    if fits:
        grants.refuse_allow(origins)
        return
    with pytest.raises(UsageError, match="on this machine only"):
        grants.refuse_allow(origins)


def test_paths_of_steps_find_their_actions() -> None:
    """An action is known by one key wherever it stands: in a loop, a branch, a try, or a file that is used."""
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


def test_a_file_that_is_used_goes_on_where_its_user_is() -> None:
    """What its user did on the page before belongs to the action of a file that opens no page itself; behind it, that the file was used belongs to an action of the user."""
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


def test_a_sign_in_is_what_comes_right_behind_a_password() -> None:
    """What is sent with a secret in its form may be a sign-in; what is clicked behind that is none, though no page was opened in between."""
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
