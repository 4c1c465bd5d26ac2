"""Resume from a checkpoint: repeated steps lead where the first run led, and every action on the way is reconciled, not repeated."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from nodes.errors import SiteError, UsageError
from nodes.rules import Rule
from nodes.targets import Target
from runtime import events
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.settings import settings
from runtime.system import files as system_files
from runtime.workspace import run_index
from tests.fakes import FakeBrowser, FakePage, FakeSite
from tests.now import now
from tests.rig import Killed, Rig

OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"


def goto(name: str, url: str) -> str:
    """A node that loads an address."""
    return f"{{id: {name}, type: browser_action, action: goto, url: '{url}'}}"


def text(name: str) -> str:
    """A node that reads the element of its name."""
    return f"{{id: {name}, type: browser_query, query: text, target: {{css: {name}}}}}"


def action(name: str, more: str = "", target: str = "") -> str:
    """A click that must not happen twice, with a `confirm`."""
    target = target or name
    confirm = (
        f"{{settle: 0, nodes: [{{id: look_{name}, type: browser_query, query: text, target: {{css: '{target}_done'}}}}],"
        f" done: \"{{{{ look_{name} == 'yes' }}}}\"}}"
    )
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{target}'}}, confirm: {confirm}{more}}}"


def group(*nodes: str, more: str = "") -> str:
    """A group of nodes: no commit point inside."""
    return f"{{id: unit, type: group{more}, nodes: [{', '.join(nodes)}]}}"


def flow(*nodes: str, more: str = "") -> str:
    """A workflow file with these top-level nodes."""
    return f"version: 1\nname: test\n{more}\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes)


class Shop:
    """A site that pays and then shows other pages. It kills the engine at chosen actions."""

    def __init__(self) -> None:
        self.site = FakeSite(texts={"css=status": "open"}, on_click=self._carry_out, before_click=self._begin)
        self.kill_before: set[str] = set()
        self.kill_after: set[str] = set()

    async def _begin(self, target: str, _page: FakePage) -> None:
        if target in self.kill_before:
            raise Killed

    async def _carry_out(self, target: str, _page: FakePage) -> None:
        self.site.texts[f"{target}_done"] = "yes"
        if target == "css=pay":
            self.site.texts["css=status"] = "paid"
        if target in self.kill_after:
            raise Killed


def signed_in_only(signed: set[FakeBrowser]) -> type[FakePage]:
    """Pages whose texts only browsers in ``signed`` see."""

    class Gated(FakePage):
        async def text(self, target: Target) -> str:
            found = await super().text(target)
            return found if self.browser in signed else "please sign in"

    return Gated


async def die(rig: Rig, shop: Shop, *, before: str = "", after: str = "", browser_survives: bool = False) -> None:
    """Start the run and kill it at an action; then let the shop work normally."""
    shop.kill_before, shop.kill_after = {before}, {after}
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=browser_survives)
    shop.kill_before, shop.kill_after = set(), set()


async def test_a_route_keeps_its_branch(tmp_path: Path) -> None:
    """A route keeps its branch though the page that decided it shows something else after the action, and no other action is done."""
    shop = Shop()
    branch = f"{{name: owing, when: \"{{{{ status == 'open' }}}}\", nodes: [{action('pay')}]}}"
    way = f"{{id: way, type: route, branches: [{branch}], otherwise: [{action('complain')}]}}"
    rig = Rig(tmp_path, flow(OPEN, group(text("status"), way), more="output: '{{ run.taken.way }}'"), site=shop.site)
    await die(rig, shop, after="css=pay")
    ended = await rig.resume()
    assert (ended.status, ended.output, shop.site.actions) == ("passed", "owing", ["css=pay"])


async def test_a_node_that_was_begun_is_finished(tmp_path: Path) -> None:
    """A half-done group is finished even if its `when` is false by now."""
    shop = Shop()
    rig = Rig(
        tmp_path,
        flow(OPEN, text("status"), group(action("pay"), action("ship"), more=", when: \"{{ status == 'open' }}\"")),
        site=shop.site,
    )
    await die(rig, shop, after="css=pay")
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions == ["css=pay", "css=ship"]


@pytest.mark.parametrize("key", [", key: '{{ o.n }}'", ""])
async def test_no_item_is_lost_when_the_site_lists_fewer(tmp_path: Path, key: str) -> None:
    """Every order is paid once though the repeated list misses the paid one, even if items are identified by position only."""
    shop = Shop()
    orders = ["A", "B", "C"]

    def listed() -> None:
        shop.site.texts["css=rows"] = json.dumps([[order] for order in orders])

    async def pay(target: str, _page: FakePage) -> None:
        orders.remove(target.removeprefix("css=pay"))
        listed()
        shop.site.texts[f"{target}_done"] = "yes"
        if target in shop.kill_after:
            raise Killed

    listed()
    shop.site.on_click = pay
    rows = "{id: rows, type: browser_query, query: extract, min: 0, target: {css: rows}, fields: {n: b}}"
    nodes = f"{goto('go', 'http://shop.test/{{ o.n }}')}, {action('pay', target='pay{{ o.n }}')}"
    loop = f"{{id: each, type: iterate, over: '{{{{ rows }}}}', as: o{key}, nodes: [{nodes}]}}"
    rig = Rig(tmp_path, flow(OPEN, rows, loop, more="output: '{{ each | length }}'"), site=shop.site)
    await die(rig, shop, after="css=payA")
    ended = await rig.resume()
    assert (ended.status, ended.output, shop.site.actions) == ("passed", 3, ["css=payA", "css=payB", "css=payC"])


async def test_confirm_is_asked_by_a_browser_that_is_signed_in_again(tmp_path: Path) -> None:
    """A sign-in after the checkpoint is repeated before `confirm` looks, which would see nothing without it."""
    shop = Shop()
    signed: set[FakeBrowser] = set()

    async def sign_in(target: str, page: FakePage) -> None:
        shop.site.texts[f"{target}_done"] = "yes"
        if target == "css=signin":
            signed.add(page.browser)
        elif shop.kill_after:
            raise Killed

    shop.site.on_click, shop.site.page = sign_in, signed_in_only(signed)
    sign = "{id: signin, type: browser_action, action: click, target: {css: signin}, effect: idempotent}"
    rig = Rig(tmp_path, flow(group(goto("login", "http://shop.test/login"), sign, action("pay"))), site=shop.site)
    shop.kill_after = {"css=pay"}
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    shop.kill_after = set()
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions.count("css=pay") == 1


@pytest.mark.parametrize("broken_off", ["killed", "failed"])
async def test_an_interrupted_repetition_still_leads_to_its_effect(tmp_path: Path, broken_off: str) -> None:
    """A resume that is killed or fails while it repeats steps forgets no side effect; the next one repeats only what `confirm` needs."""
    shop = Shop()
    signed: set[FakeBrowser] = set()
    breaks = [False, True, False]

    async def click(target: str, page: FakePage) -> None:
        shop.site.texts[f"{target}_done"] = "yes"
        if target != "css=signin":
            return
        if breaks.pop(0):
            if broken_off == "killed":
                raise Killed
            raise SiteError("verify-failed", "the site is down", phase="after")
        signed.add(page.browser)

    shop.site.on_click, shop.site.page = click, signed_in_only(signed)
    unit = group(
        goto("login", "http://shop.test/login"),
        *(
            f"{{id: {name}, type: browser_action, action: click, target: {{css: {name}}}, effect: idempotent}}"
            for name in ("signin", "put")
        ),
        action("pay"),
        "{id: last, type: browser_action, action: click, target: {css: last}, effect: idempotent}",
    )
    rig = Rig(tmp_path, flow(unit), site=shop.site)
    await die(rig, shop, before="css=last")
    if broken_off == "killed":
        with pytest.raises(Killed):
            await rig.resume()
    else:
        assert (await rig.resume()).status == "failed"
    rig.die()
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions == ["css=signin", "css=put", "css=pay", "css=signin", "css=signin", "css=last"]


@pytest.mark.parametrize("broken_off", ["killed", "failed", "neither"])
async def test_a_step_that_only_leads_to_the_page_names_the_way_around_it(tmp_path: Path, broken_off: str) -> None:
    """If the site no longer lets it be repeated, its error names the `--from` without it, also if the resume before ended at it."""
    shop = Shop()
    shop.site.texts["css=pay_done"] = "not yet"
    ends: dict[str, list[BaseException]] = {
        "killed": [Killed()],
        "failed": [SiteError("verify-failed", "it is empty")],
        "neither": [],
    }
    breaks = [*ends[broken_off], SiteError("verify-failed", "it is empty")]

    async def click(target: str, _page: FakePage) -> None:
        if target == "css=put" and shop.site.actions.count("css=pay"):
            raise breaks.pop(0)
        if target == "css=pay":
            raise Killed

    shop.site.on_click = click
    put = "{id: put, type: browser_action, action: click, target: {css: put}, effect: idempotent}"
    rig = Rig(tmp_path, flow(group(goto("login", "http://shop.test/login"), put, action("pay"))), site=shop.site)
    await die(rig, shop)
    for _ in ends[broken_off]:
        with pytest.raises(Killed) if broken_off == "killed" else contextlib.nullcontext():
            await rig.resume()
        rig.die()
    error = (await rig.resume()).error
    assert error is not None
    assert error["evidence"] == {"preparation": ["unit/login", "unit/put", "unit/pay"], "from": "unit/pay"}
    assert f"`runops resume {rig.id} --from unit/pay` leaves such steps out" in error["fix"]
    assert shop.site.actions.count("css=pay") == 1


async def _decided(tmp_path: Path, pay: str) -> tuple[Rig, Shop]:
    """A run killed in ``pay``, which a person has since confirmed as done; its browser and the sign-in before it are gone."""
    shop = Shop()

    signed: set[FakeBrowser] = set()

    class Gated(FakePage):
        async def text(self, target: Target) -> str:
            if self.browser not in signed:
                raise SiteError("target-not-found", "this is the sign-in page")
            return await super().text(target)

    async def click(target: str, page: FakePage) -> None:
        shop.site.texts[f"{target}_done"] = "yes"
        if target == "css=signin":
            signed.add(page.browser)
        elif shop.kill_after:
            raise Killed

    shop.site.on_click, shop.site.page = click, Gated
    sign = "{id: signin, type: browser_action, action: click, target: {css: signin}, effect: idempotent}"
    unit = group(goto("login", "http://shop.test/login"), sign, pay)
    rig = Rig(tmp_path, flow(unit, goto("orders", "http://shop.test/orders"), text("status")), site=shop.site)
    await die(rig, shop, after="css=pay", browser_survives=True)
    assert (await rig.resume()).exit == 4
    rig.die()
    now(run_index.decide(file_store.FileStore(tmp_path), rig.id, "done"))
    return rig, shop


async def test_steps_before_a_decided_effect_are_repeated_if_the_site_does_not_show_it(tmp_path: Path) -> None:
    """A person confirmed the effect, but `confirm` sees nothing before the sign-in: the sign-in is repeated, the effect is not."""
    rig, shop = await _decided(tmp_path, action("pay", more=", after_crash: ask"))
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions == ["css=signin", "css=pay", "css=signin"]


async def test_steps_before_a_decided_effect_can_be_repeated(tmp_path: Path) -> None:
    """Without `confirm`, the error of the step that misses the sign-in names the `--from` that repeats it, also after a checkpoint."""
    rig, shop = await _decided(tmp_path, "{id: pay, type: browser_action, action: click, target: {css: pay}}")
    ended = await rig.resume()
    assert ended.error is not None
    assert ended.error["evidence"] == {"left_out": ["unit/login", "unit/signin"], "from": "unit/login"}
    assert f"`runops resume {rig.id} --from unit/login`" in ended.error["fix"]
    rig.die()
    assert (await rig.resume("unit/login")).status == "passed"
    assert shop.site.actions == ["css=signin", "css=pay", "css=signin"]


async def test_a_checkpoint_from_before_a_decided_effect_is_not_its_page(tmp_path: Path) -> None:
    """A checkpoint taken while steps were repeated, before a person confirmed the effect, is not read as the page after the effect."""
    shop = Shop()
    pay = "{id: pay, type: browser_action, action: click, target: {css: pay}, verify: [{text: paid, target: {css: note}}]}"
    rig = Rig(tmp_path, flow(OPEN, goto("form", "http://shop.test/form"), pay, text("status")), site=shop.site)
    await die(rig, shop, after="css=pay")
    *_, latest = sorted(rig.store.private(rig.id).glob("checkpoint-*.json"), key=lambda each: each.stat().st_mtime_ns)
    latest.unlink()
    assert (await rig.resume()).exit == 4
    rig.die()
    now(run_index.decide(file_store.FileStore(tmp_path), rig.id, "done"))
    ended = await rig.resume()
    assert (ended.status, (ended.question or {}).get("reason")) == ("paused", "page-lost")


@pytest.mark.parametrize(("then", "seconds"), [(text("status"), 30.0), (action("next"), 2.0)], ids=["read", "act"])
async def test_the_page_of_an_action_without_a_result_is_a_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, seconds: float
) -> None:
    """In a new browser, `verify` of an action confirmed as done has 2 seconds before an acting step, its full timeout before a reading one."""
    limits: list[float] = []
    shop = Shop()
    waits = FakePage.wait_for

    async def wait_for(self: FakePage, rule: Rule) -> None:
        if rule.text == "gone":
            waited.append(limits[-1])
        await waits(self, rule)

    waited: list[float] = []
    monkeypatch.setattr(FakeBrowser, "bound", lambda _self, given, **_: limits.append(given))
    monkeypatch.setattr(FakePage, "wait_for", wait_for)
    pay = action("pay", ", timeout: 30, verify: [{text: gone, target: {css: row}}]")
    rig = Rig(tmp_path, flow(OPEN, pay, then), site=shop.site)
    await die(rig, shop, after="css=pay")
    ended = await rig.resume()
    assert (ended.status, waited) == ("passed" if seconds == 2 else "paused", [seconds])


async def test_a_browser_left_half_restored_is_not_reattached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that survives a resume killed while restoring is not reused: the next resume restores again and continues where it should."""
    shop = Shop()
    nodes = (
        OPEN,
        "{id: mark, type: transform, expr: 1}",
        action("pay"),
        "{id: where, type: browser_query, query: url}",
    )
    rig = Rig(tmp_path, flow(*nodes, more="output: '{{ where }}'"), site=shop.site)
    await die(rig, shop, before="css=pay")

    async def killed(_self: FakeBrowser, _path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(FakeBrowser, "restore", killed)
        with pytest.raises(Killed):
            await rig.resume()
    rig.die(browser_survives=True)
    ended = await rig.resume()
    assert (ended.status, ended.output, shop.site.actions) == ("passed", "http://shop.test/", ["css=pay"])


async def test_verify_on_a_restored_page_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that holds on the checkpoint's page proves nothing about an action after it, whichever browser survives."""
    shop = Shop()

    async def holds(self: FakePage, _rule: object) -> bool:
        return self.address.endswith("/cart") or "css=pay_done" in shop.site.texts

    monkeypatch.setattr(FakePage, "holds", holds)
    unit = group(
        goto("checkout", "http://shop.test/checkout"), action("pay", ", verify: [{text: x, target: {css: p}}]")
    )
    rig = Rig(tmp_path, flow(goto("cart", "http://shop.test/cart"), unit), site=shop.site)
    await die(rig, shop, before="css=pay")

    async def killed(_self: FakePage, _target: object) -> str:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(FakePage, "text", killed)
        with pytest.raises(Killed):
            await rig.resume()
    rig.die(browser_survives=True)
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions == ["css=pay"]


async def test_on_redo_applies_after_two_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`on_redo: redo` still applies after the resume itself was killed, without a question."""
    shop = Shop()
    add = "{id: add, type: browser_action, action: click, target: {css: add}}"
    rig = Rig(tmp_path, flow(OPEN, group(add, action("pay"), more=", on_redo: redo")), site=shop.site)
    await die(rig, shop, before="css=pay")

    async def killed(_self: FakeBrowser, _path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(FakeBrowser, "restore", killed)
        with pytest.raises(Killed):
            await rig.resume()
    rig.die()
    ended = await rig.resume()
    assert (ended.status, shop.site.actions) == ("passed", ["css=add", "css=add", "css=pay"])


async def test_on_redo_applies_in_a_browser_that_was_restored_and_survived(tmp_path: Path) -> None:
    """After a resume that restored a checkpoint and was killed before the action, the next one continues in that browser, as `on_redo: redo` says."""
    shop = Shop()
    again = "{id: again, type: browser_action, action: click, target: {css: again}, effect: idempotent}"
    add = "{id: add, type: browser_action, action: click, target: {css: add}}"
    rig = Rig(tmp_path, flow(OPEN, group(again, add, action("pay"), more=", on_redo: redo")), site=shop.site)
    await die(rig, shop, before="css=pay")
    shop.kill_before = {"css=again"}
    with pytest.raises(Killed):
        await rig.resume()
    rig.die(browser_survives=True)
    shop.kill_before = set()
    ended = await rig.resume()
    assert (ended.status, shop.site.actions) == ("passed", ["css=again", "css=add", "css=again", "css=add", "css=pay"])


async def test_at_most_one_call_is_open_in_a_thread(tmp_path: Path) -> None:
    """A resume that dies while it repeats steps before the action leaves one open call, its own."""
    shop = Shop()
    again = "{id: again, type: browser_action, action: click, target: {css: again}, effect: idempotent}"
    rig = Rig(tmp_path, flow(OPEN, group(again, action("pay"))), site=shop.site)
    await die(rig, shop, before="css=pay")
    shop.kill_before = {"css=again"}
    with pytest.raises(Killed):
        await rig.resume()
    rig.die()
    assert [attempt.call.path for attempt in rig.history.open_calls()] == ["unit/again"]


async def test_tolerated_failures_are_counted_over_all_resumes(tmp_path: Path) -> None:
    """Failures skipped before the crash, also in finished items, count in the end."""
    shop = Shop()
    miss = "{id: miss, type: browser_action, action: click, target: {css: missing}, on_error: continue}"
    loop = (
        f"{{id: each, type: iterate, over: [a, b], as: o, nodes: [{miss}, {goto('go', 'http://shop.test/{{ o }}')}]}}"
    )
    rig = Rig(tmp_path, flow(OPEN, loop, action("pay"), goto("end", "http://shop.test/end")), site=shop.site)
    rig.missing.add("css=missing")
    await die(rig, shop, before="css=pay")
    assert (await rig.resume()).tolerated == 2


async def test_a_synced_checkpoint_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every write of a checkpoint, the file of the last synced checkpoint still exists: a power cut may end the log there."""
    shop = Shop()
    nodes = [node for n in range(5) for node in (goto(f"go{n}", f"http://shop.test/{n}"), action(f"d{n}"))]
    rig = Rig(tmp_path, flow(*nodes), site=shop.site)
    missing: list[str] = []
    keep, kept_files = system_files.keep, list[str]()

    async def watched(path: Path, data: bytes | Path) -> tuple[int, str]:
        written = await keep(path, data)
        kept_files.append(path.name)
        assert rig.open_writer is not None
        synced = rig.open_writer.synced
        kept = [e for e in rig.store.read(rig.id).entries if isinstance(e, entries.Checkpoint) and e.seq <= synced]
        missing.extend(e.file for e in kept[-1:] if not (rig.store.private(rig.id) / e.file).exists())
        return written

    monkeypatch.setattr(system_files, "keep", watched)
    assert (await rig.start()).status == "passed"
    files = list(rig.store.private(rig.id).glob("checkpoint-*.json"))
    assert missing == []
    assert len(kept_files) > 3
    assert 1 <= len(files) <= 3


async def test_no_event_contains_a_secret(tmp_path: Path) -> None:
    """Texts that a step waits for and messages between attempts are masked like everything else."""
    echo = "{id: echo, type: browser_query, query: text, target: {css: h1}}"
    wait = "{id: w, type: browser_action, action: wait, retry: {attempts: 2, delay: 0}, verify: [{text: '{{ echo }}', target: {css: p}}]}"
    rig = Rig(
        tmp_path,
        flow(OPEN, echo, wait, more="secrets: [TOKEN]"),
        site=FakeSite(texts={"css=h1": "correct-horse"}),
        secrets={"TOKEN": "correct-horse"},
    )
    await rig.start()
    assert any(isinstance(event, events.StepWaiting) for event in rig.told)
    assert [event for event in rig.told if "correct-horse" in str(event)] == []


def test_a_fold_of_nothing_has_no_header() -> None:
    """A log that died before its first entry has no header."""
    assert history.History().header is None


async def test_the_authors_retry_covers_a_lost_answer(tmp_path: Path) -> None:
    """`retry.on` with the code retries without asking while attempts are left; after the last one the outcome is unknown."""
    shop = Shop()
    pay = "{id: pay, type: browser_action, action: click, target: {css: pay}, retry: {attempts: 2, delay: 0, on: [answer-lost]}}"
    rig = Rig(tmp_path, flow(OPEN, pay), site=shop.site)

    async def lose(_target: str, page: FakePage) -> None:
        page.browser.lost = "POST http://shop.test/pay"

    shop.site.on_click = lose
    ended = await rig.start()
    assert (ended.status, ended.exit, len(shop.site.actions)) == ("paused", 4, 2)


async def test_fields_of_a_skipped_action_are_not_sent_with_the_next(tmp_path: Path) -> None:
    """Fields are filled again up to an action that had happened; skipping it clears them, so the next action sends none of them."""
    shop = Shop()
    fill = "{id: name, type: browser_action, action: fill, target: {label: Name}, value: A}"
    rig = Rig(tmp_path, flow(OPEN, group(fill, action("send"), action("other"))), site=shop.site)
    await die(rig, shop, after="css=send")
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions == ["css=send", "css=other"]
    assert shop.site.records == [{'label="Name"': "A"}, {}]


async def test_a_chosen_target_is_masked_too(tmp_path: Path) -> None:
    """The log names the match of `any_of` without the secret that a reference brought into it."""
    echo = "{id: echo, type: browser_query, query: text, target: {css: h1}}"
    click = "{id: click, type: browser_action, action: click, target: {any_of: [{css: '{{ echo }}'}, {css: b}]}}"
    rig = Rig(
        tmp_path,
        flow(OPEN, echo, click, more="secrets: [TOKEN]"),
        site=FakeSite(texts={"css=h1": "correct-horse"}),
        secrets={"TOKEN": "correct-horse"},
    )
    assert (await rig.start()).status == "passed"
    assert "css=[hidden]" in rig.store.conversation_file(rig.id).read_text()


async def test_two_answers_to_one_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that another one overtook while it waited for the run is refused, and changes nothing."""
    shop = Shop()
    pay = "{id: pay, type: browser_action, action: click, target: {css: pay}}"
    rig = Rig(tmp_path, flow(OPEN, pay), site=shop.site)
    await die(rig, shop, after="css=pay")
    assert (await rig.resume()).exit == 4
    rig.die()
    chosen = settings.Settings(home=tmp_path)
    stale = run_index.load_history(file_store.Files(chosen.home), rig.id)
    now(run_index.decide(file_store.FileStore(chosen.home), rig.id, "done"))
    monkeypatch.setattr(run_index, "load_history", lambda *_: stale)
    with pytest.raises(UsageError, match="answered already"):
        now(run_index.decide(file_store.FileStore(chosen.home), rig.id, "not-done"))
    assert (await rig.resume()).status == "passed"
    assert shop.site.actions == ["css=pay"]
