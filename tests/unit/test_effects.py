"""What a build may do of class *effect*: asked for as it is, done, or held."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from director import demands, draft, effects, grants, person, wordings, workshop
from director.editing import lint
from nodes import registry
from nodes.base import Leaf
from nodes.errors import Paused, UsageError
from runtime import engine
from runtime.language import callees
from tests import benches, workshops
from tests.fakes import FakeSite

pytestmark = pytest.mark.anyio

SITE = "http://127.0.0.1:8765"

TEXT = textwrap.dedent("""
    version: 1
    inputs:
      base_url: {type: string, default: "http://127.0.0.1:8765"}
      who: {type: string, default: Ann}
    allowed_origins: ["{{ inputs.base_url }}"]
    nodes:
      - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}
      - {id: orders, type: browser_query, query: extract, target: {css: tr}, fields: {no: td}}
      - id: each
        type: iterate
        over: "{{ orders }}"
        as: order
        nodes:
          - {id: pay, type: browser_action, action: click, target: {role: button, name: "Pay for {{ inputs.who }}"}, timeout: 5}
      - {id: note, type: browser_action, action: press, key: Enter}
      - {id: work, type: agent, goal: Tidy up.}
""")


async def holds(shop: workshop.Workshop, place: str = "1_run_draft", **given: str) -> engine.Holds:
    """What is held of all deeds of the draft."""
    draft_now = shop.desk.draft
    assert draft_now is not None
    wanted = effects.deeds_of(draft_now.loaded)
    return await shop.effects.demand(wanted, place=place, inputs=given or None)


def leaf(shop: workshop.Workshop, name: str) -> Leaf:
    """A leaf of the draft."""
    assert shop.desk.draft is not None
    found = shop.desk.draft.loaded.index[name][0]
    assert isinstance(found, Leaf)
    return found


def asking(
    folder: Path, *answers: str, text: str = TEXT, policy: workshop.Policy = "ask"
) -> tuple[workshop.Workshop, list[str]]:
    """A workshop whose person gives these answers, and what they were asked."""
    who = workshops.Answering(*answers)
    return workshops.opened(folder, SITE, text, policy=policy, who=who), who.asked


def edited(shop: workshop.Workshop, old: str, new: str) -> None:
    """Put other words into the draft."""
    assert shop.desk.draft is not None
    assert old in shop.desk.draft.text
    shop.desk.write_draft(draft.Draft.of(shop.desk.draft.text.replace(old, new)), reason=f"{new} is right", by="model")


async def test_a_yes_holds_nothing_back_but_what_it_was_given_for(tmp_path: Path) -> None:
    """What was granted is done in every turn of its loop, and whatever was refused, or never asked for, is held; reads are nobody's business."""
    shop, asked = asking(tmp_path, "yes", "no", "no")
    held = await holds(shop)
    assert [held(leaf(shop, "pay"), path) for path in ("each[1]/pay", "each[#9]/pay")] == [False, False]
    assert held(leaf(shop, "note"), "note")
    assert held(leaf(shop, "pay"), "elsewhere")
    assert not held(leaf(shop, "open"), "open")
    assert len(asked) == 3
    for said in (
        'click button "Pay for Ann"',
        "who = Ann",
        "{{ orders }}",
        "css tr",
        f"page   {SITE}/orders",
        "hold all: nothing",
    ):
        assert said in asked[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name: "Pay', 'name: "Delete'),
        ("action: click", "action: dblclick"),
        ('over: "{{ orders }}"', 'over: ["1001", "1002"]'),
        ("css: tr", "css: li"),
        ("/orders", "/users"),
        ("default: Ann", "default: Eve"),
        ("id: pay", "id: pay_it"),
        ("timeout: 5", "when: '{{ order.no }}'"),
        ("timeout: 5", "retry: {attempts: 3, on: [verify-failed]}"),
        ('default: "http://127.0.0.1:8765"', 'default: "http://127.0.0.1:9"'),
    ],
)
async def test_another_deed_is_asked_for_anew(tmp_path: Path, old: str, new: str) -> None:
    """Where the deed itself is edited, or for what or where it is done, what was answered before does not count."""
    text = TEXT.replace('name: "Pay for', 'name: "Pay {{ inputs.base_url }} for')
    shop, asked = asking(tmp_path, *["yes"] * 3, *["no"] * 3, text=text)
    await holds(shop)
    edited(shop, old, new)
    held = await holds(shop, "2_run_draft")
    name = "pay_it" if "pay_it" in new else "pay"
    assert held(leaf(shop, name), f"each[1]/{name}")
    assert name in asked[3]


@pytest.mark.parametrize(
    "new", ["timeout: 9", "description: now", "verify: [{visible: {text: paid}}]", "retry: {attempts: 2}"]
)
async def test_how_a_deed_is_checked_is_not_the_deed(tmp_path: Path, new: str) -> None:
    """Another description, rule, time or retry leaves a deed what it was: nobody is asked again."""
    shop, asked = asking(tmp_path, "yes", "no", "no")
    await holds(shop)
    edited(shop, "timeout: 5", new)
    held = await holds(shop, "2_run_draft")
    assert (len(asked), held(leaf(shop, "pay"), "each[1]/pay")) == (3, False)


async def test_other_inputs_make_another_deed(tmp_path: Path) -> None:
    """A run with other inputs, where the deed reads them, is asked for by itself; the answer to the first one stands."""
    text = TEXT.replace(
        "  - {id: note",
        '  - {id: home, type: browser_action, action: goto, url: "{{ inputs.base_url }}"}\n  - {id: note',
    )
    shop, asked = asking(tmp_path, "yes", "no", "no", "no", text=text)
    await holds(shop)
    held = await holds(shop, "2_run_draft", who="Eve")
    assert held(leaf(shop, "pay"), "each[1]/pay")
    held = await holds(shop, "3_run_draft", who="Ann")
    assert (len(asked), held(leaf(shop, "pay"), "each[1]/pay")) == (4, False)


WAY = textwrap.dedent("""
    version: 1
    inputs: {amount: {type: string, default: "10"}}
    nodes:
      - {id: home, type: browser_action, action: goto, url: "http://127.0.0.1:8765/a"}
      - {id: first, type: browser_action, action: fill, target: {label: Note}, value: old}
      - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/b"}
      - {id: menu, type: browser_action, action: click, target: {text: Transfer}, effect: idempotent}
      - {id: amount, type: browser_action, action: fill, target: {label: Amount}, value: "{{ inputs.amount }}"}
      - {id: look, type: browser_query, query: text, target: {css: h1}}
      - id: big
        type: route
        branches:
          - {name: small, when: "{{ inputs.amount == '0' }}", nodes: [{id: no, type: transform, expr: 1}]}
          - {name: large, when: "{{ look == 'Send' }}", nodes: [{id: send, type: browser_action, action: click, target: {text: Send}}]}
          - {name: other, when: "{{ look == 'x' }}", nodes: [{id: nothing, type: transform, expr: 2}]}
""")


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("text: Transfer", "text: Withdraw", True),
        ('value: "{{ inputs.amount }}"', 'value: "1000"', True),
        ("default: \"10\"", "default: \"99\"", True),
        ("  - {id: look", "  - {id: tick, type: browser_action, action: check, target: {label: All}}\n  - {id: look", True),
        ("== 'Send'", "!= 'Send'", True),
        ("== '0'", "== '1'", True),
        ("id: big\n", "id: big\n    when: '{{ look is defined }}'\n", True),
        ("value: old", "value: new", False),
        ("id: amount, ", "id: how_much, ", False),
        ("id: menu, ", "id: menu, timeout: 9, verify: [{text: Amount}], ", False),
        ("== 'x'", "== 'y'", False),
    ],
)  # fmt: skip
async def test_a_deed_is_done_where_it_was_granted(tmp_path: Path, old: str, new: str, again: bool) -> None:
    """What leads to its page from the last address on, what is filled in there, and where its block is run, belong to a deed; what comes before and beside it does not."""
    shop, asked = asking(tmp_path, "yes", "no", text=WAY)
    await holds(shop)
    for said in ('click "Transfer"', 'fill field "Amount" "10"', "{{ look == 'Send' }}", "/b"):
        assert said in asked[0]
    assert "Note" not in asked[0]
    edited(shop, old, new)
    held = await holds(shop, "2_run_draft")
    assert (len(asked), held(leaf(shop, "send"), "big/send")) == (1 + again, again)


RESTING = textwrap.dedent("""
    version: 1
    nodes:
      - {id: orders, type: browser_query, query: extract, target: {css: tr}, fields: {no: td}}
      - {id: some, type: transform, sql: "SELECT no FROM orders"}
      - {id: first, type: transform, expr: "{{ some[0].no }}"}
      - {id: keep, type: context, set: {who: Ann}}
      - {id: pay, type: browser_action, action: click, target: {text: "Pay {{ first }} for {{ vars.who }}"}}
""")


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("tr}", "li}", 1),
        ("[0]", "[1]", 1),
        ("no FROM", "'1' AS no FROM", 1),
        ("Ann", "Eve", 1),
        ("id: pay", "description: so, id: pay", 0),
    ],
)
async def test_a_deed_rests_on_all_that_it_reads(tmp_path: Path, old: str, new: str, again: int) -> None:
    """What a deed reads at second hand, or as a variable, belongs to it: where that is edited, it is asked for anew."""
    shop, asked = asking(tmp_path, "yes", "no", text=RESTING)
    await holds(shop)
    edited(shop, old, new)
    held = await holds(shop, "2_run_draft")
    assert (len(asked), held(leaf(shop, "pay"), "pay")) == (1 + again, bool(again))


async def test_a_value_set_by_hand_makes_another_deed(tmp_path: Path) -> None:
    """Where a value is pinned that the deed rests on, the yes to what stands in the file does not count on the bench; for whole runs, which know no pins, it stands."""
    shop, asked = asking(tmp_path, "yes", "no", "no", "no")
    await holds(shop)
    shop.desk.variables.set("orders", ["1007"], reason="a smaller list", by="model")
    wanted = [(leaf(shop, "pay"), "each[1]/pay")]
    bench = await shop.effects.demand(wanted, place="2_execute_nodes")
    whole = await shop.effects.demand(wanted, place="3_finish", pins={})
    assert [each(leaf(shop, "pay"), "each[1]/pay") for each in (bench, whole)] == [True, False]
    assert (len(asked), '["1007"] (set by hand)' in asked[3]) == (4, True)


def click() -> Leaf:
    """A click of an agent's own."""
    found = registry.parse_node({"id": "click", "type": "browser_action", "action": "click", "target": {"text": "Pay"}})
    assert isinstance(found, Leaf)
    return found


@pytest.mark.parametrize(("answers", "own"), [(("yes", "yes", "no"), True), (("no", "no", "yes"), False)])
async def test_a_click_lets_no_agent_click(tmp_path: Path, answers: Sequence[str], own: bool) -> None:
    """What an agent does by itself is covered by a yes to the agent, which says so, and by no other; it covers nothing outside."""
    shop, asked = asking(tmp_path, *answers)
    held = await holds(shop)
    assert held(leaf(shop, "work"), "work") is own
    assert held(click(), "work/3_click") is own
    assert held(click(), "note/3_click")
    assert held(click(), "click")
    assert "by itself" in asked[2]
    assert "by itself" not in asked[0]


async def test_hold_all_asks_nothing_more(tmp_path: Path) -> None:
    """Who wants everything held is asked no further question, and what they allowed before is held, too; also in a later process of the build."""
    shop, asked = asking(tmp_path, "yes", "hold all")
    held = await holds(shop)
    again = grants.Grants(shop)
    later = await again.demand([(leaf(shop, "pay"), "pay"), (click(), "click")], place="2_execute_nodes")
    for each in (held, later):
        assert each(leaf(shop, "pay"), "each[1]/pay")
    assert len(asked) == 2


async def test_answers_are_kept(tmp_path: Path) -> None:
    """A build that goes on finds in its log what was answered: yes and no alike."""
    shop, asked = asking(tmp_path, "yes", "no", "no")
    await holds(shop)
    shop.effects = grants.Grants(shop)
    held = await holds(shop, "7_finish")
    assert (len(asked), held(leaf(shop, "pay"), "each[1]/pay"), held(leaf(shop, "note"), "note")) == (3, False, True)
    assert [each["answer"] for each in grants.answers(shop.pen)] == ["yes", "no", "no"]


async def test_a_question_waits_in_its_own_words(tmp_path: Path) -> None:
    """Where nobody is there the session pauses, and asks the same again when it goes on, whatever page is looked at by then."""
    shop = workshops.opened(tmp_path, SITE, TEXT, policy="ask", who=person.Nobody())
    wanted = [(leaf(shop, "pay"), "each[1]/pay")]
    with pytest.raises(Paused) as first:
        await shop.effects.demand(wanted, place="1_execute_nodes", page=f"{SITE}/one")
    with pytest.raises(Paused) as second:
        await shop.effects.demand(wanted, place="1_execute_nodes", page=f"{SITE}/two")
    assert first.value.message == second.value.message


async def test_scouting_is_asked_for_each_time(tmp_path: Path) -> None:
    """A deed of scouting that was allowed once is asked for when it is wanted again."""
    shop, asked = asking(tmp_path, "yes", "no")
    first = await shop.effects.demand([(click(), "click")], place="3_send_scout/1_debug_action")
    again = await shop.effects.demand([(click(), "click")], place="3_send_scout/2_debug_action")
    assert (first(click(), "click"), again(click(), "click"), len(asked)) == (False, True, 2)


@pytest.mark.parametrize(
    ("policy", "site", "held"), [("allow", SITE, False), ("hold", SITE, True), ("allow", "https://shop.test", True)]
)
async def test_a_policy_asks_nobody(tmp_path: Path, policy: workshop.Policy, site: str, held: bool) -> None:
    """Where all is allowed, or all held, nobody is asked; and of a site that is not on this machine nothing is allowed in that way."""
    shop, asked = asking(tmp_path, policy=policy, text=TEXT.replace(SITE, site))
    found = await holds(shop)
    assert (found(leaf(shop, "pay"), "each[1]/pay"), asked) == (held, [])


@pytest.mark.parametrize(
    ("address", "deed"),
    [
        ("JavaScript:pay()", True),
        ("java\tscript:fetch('http://127.0.0.1:8765/pay')", True),
        ("data:text/html,<form method=post action=http://127.0.0.1:8765/pay></form><script>document.forms[0].submit()</script>", True),
        ("HTTP://127.0.0.1:8765/orders", False),
        ("about:blank", False),
    ],
)  # fmt: skip
async def test_a_script_in_an_address_is_a_deed(tmp_path: Path, address: str, deed: bool) -> None:
    """What is no address of a site may be a script, and do anything: it is held like a click, though opening an address is not; also filled in."""
    for written in (address, "{{ inputs.who }}"):
        text = TEXT.replace('url: "{{ inputs.base_url }}/orders"', f"url: {json.dumps(written)}")
        shop, _asked = asking(tmp_path / written[:2], policy="hold", text=text)
        held, node = await holds(shop), leaf(shop, "open")
        assert held(node.model_copy(update={"url": address}), "open") is deed


@pytest.mark.parametrize(
    ("how", "deed"),
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
async def test_a_download_by_what_may_be_no_link_is_a_deed(tmp_path: Path, how: str, deed: bool) -> None:
    """A button that gives a file may send a form: it is held, and the draft is told so, unless the draft says what it is; a link and an address are not."""
    text = TEXT.replace("action: press, key: Enter", f"action: download, {how}")
    shop, _asked = asking(tmp_path, policy="hold", text=text)
    assert (await holds(shop))(leaf(shop, "note"), "note") is deed
    assert shop.desk.draft is not None
    hints = [each.node for each in lint.effects(shop.desk.draft) if each.code == "download-by-click"]
    assert hints == (["note"] if deed and "effect:" not in how else [])


async def test_a_line_break_that_is_typed_is_a_key(tmp_path: Path) -> None:
    """Typed, a line break is the key Enter, which may send a form: asked for, and done with its references filled in; where the file says that it is none, nobody is asked."""
    typing = 'type: browser_action, action: type, target: {label: Find}, value: "{{ inputs.who }}\\n"'
    shop, asked = asking(
        tmp_path, "yes", "no", "no", text=TEXT.replace("type: browser_action, action: press, key: Enter", typing)
    )
    shop.effects = grants.Grants(shop)
    wanted = leaf(shop, "note")
    held = await shop.effects.demand([(wanted, "note")], place="1_run_draft")
    assert not held(wanted, "note")
    assert not held(wanted.model_copy(update={"value": "Ann\n"}), "note")
    assert held(wanted.model_copy(update={"value": "Ann\n", "delay": 5}), "note")
    assert len(asked) == 1
    edited(shop, "action: type,", "action: type, effect: idempotent,")
    free = await shop.effects.demand([(leaf(shop, "note"), "note")], place="2_run_draft")
    assert not free(leaf(shop, "note"), "note")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("said", "node"),
    [
        ("javascript:pay('http://127.0.0.1:8765')", 'action: goto, url: "{{ said }}"'),
        ("Ann\\n", 'action: type, target: {text: user}, value: "{{ said }}"'),
    ],
)
async def test_what_becomes_a_deed_once_it_is_filled_in_is_held(tmp_path: Path, said: str, node: str) -> None:
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
    """A deed is shown with its secrets as references, and what else holds one is masked."""
    who = workshops.Answering("no", "no", "no")
    text = TEXT.replace("Pay for", "Pay tops3cret-word")
    shop = workshops.opened(tmp_path, SITE, None, policy="ask", who=who, known={"WORD": "tops3cret-word"})
    loaded = draft.Draft.of(text).loaded
    await grants.Grants(shop).demand(effects.deeds_of(loaded), place="1_run_draft")
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
    """All deeds at once are allowed where every site is known to be on this machine."""
    if fits:
        grants.refuse_allow(origins)
        return
    with pytest.raises(UsageError, match="on this machine only"):
        grants.refuse_allow(origins)


def test_paths_of_steps_find_their_deeds() -> None:
    """A deed is known by one key wherever it stands: in a loop, a branch, a try, or a file that is used."""
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
    assert [key for _leaf, key in effects.deeds_of(loaded)] == ["used/go", "go", "back"]
    paths = {"all[2]/used/go": "used/go", "all[#x%2Fy]/safe/try[2]/go": "go", "all[1]/safe/catch/back": "back"}
    assert {path: effects.key_of(loaded, path) for path in paths} == paths


SENDS = """
  - {id: home, type: browser_action, action: goto, url: "http://127.0.0.1:8765/home"}
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/form"}
  - {id: amount, type: browser_action, action: fill, target: {label: Amount}, value: "10"}
  - {id: send, type: browser_action, action: click, target: {text: Send}}
"""


@pytest.mark.parametrize(
    ("executed", "again"),
    [
        ([("open..amount", None), ("send", None)], False),
        ([("open..amount", None), ("send", "live")], False),
        ([("all", "fresh")], False),
        ([("open..send", "live")], False),
        ([("send", "live")], True),
        ([("home", None), ("send", "live")], True),
        ([("open, send", None)], True),
        ([("send", "fresh")], True),
    ],
)
async def test_a_yes_is_for_the_page_to_which_the_draft_leads(
    tmp_path: Path, executed: Sequence[tuple[str, str | None]], again: bool
) -> None:
    """On the bench a deed that was granted is asked for again where the page is another one, or something was left out before it: with the page that is there."""
    who = workshops.Answering("yes", "no")
    rig = benches.Rig(tmp_path, SENDS, policy="ask", who=who)
    done = await rig.execute("all")
    assert done["send"] == "ok"
    for nodes, begin in executed:
        done = await rig.execute(nodes, begin=begin)
    assert (len(who.asked), done["send"]) == (1 + again, "held" if again else "ok")
    if executed == [("home", None), ("send", "live")]:
        assert "page   http://127.0.0.1:8765/home" in who.asked[1]


def test_a_file_that_is_used_goes_on_where_its_user_is() -> None:
    """What its user did on the page before belongs to the deed of a file that opens no page itself; behind it, that the file was used belongs to a deed of the user."""
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
    found = [demands.deed(loaded, each, path, demands.Rests(), "") for each, path in effects.deeds_of(loaded)]
    assert [(each.way.opened, wordings.steps(each.way)) for each in found] == [
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
