"""The end of a build: refused while anything is lacking, proved by whole runs, and what it leaves."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from director import deeds, desk, draft, workshop
from director.proving import drafts, leaving, tools
from nodes.errors import SiteError
from nodes.values import Json
from runtime import log, running, trial, turn
from runtime.browser import port
from runtime.language import callees, workflow
from tests import workshops
from tests.fakes import FakeBrowser, FakePage, FakeSite

pytestmark = pytest.mark.anyio

SITE = "http://127.0.0.1:8765"

TEXT = textwrap.dedent("""
    version: 1
    name: Pays
    description: Pays an order.
    inputs:
      base_url: {type: string, default: "http://127.0.0.1:8765"}
      number: {type: string, default: "1001"}
    allowed_origins: ["{{ inputs.base_url }}"]
    nodes:
      - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.number }}"}
      - {id: pay, type: browser_action, action: click, target: {role: button, name: Pay}, description: Pays it.}
      - {id: told, type: browser_query, query: text, target: {test_id: status}}
    output: {status: "{{ told }}"}
""").lstrip()


class Browsers:
    """Fresh browsers on a fake site, in the place of Chromium."""

    def __init__(self, site: FakeSite) -> None:
        self.site = site
        self.opened = 0

    def of_run(self, *_given: object) -> Browsers:
        """In the place of ``running.Chromium``."""
        return self

    async def open(self) -> port.Browser:
        """A fresh one."""
        self.opened += 1
        return FakeBrowser(self.site)

    async def reattach(self) -> port.Browser | None:
        """None survives."""
        return None


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """What runs open here."""
    site = FakeSite(texts={'test_id="status"': "paid"})
    found = Browsers(site)
    monkeypatch.setattr(running, "Chromium", found.of_run)
    return found


def clicks(browsers: Browsers, click: Callable[[int], None]) -> None:
    """``click`` is called with the number of each click, and raises to fail it."""
    numbers: list[int] = []

    async def before(_target: str, _page: FakePage) -> None:
        numbers.append(1)
        click(len(numbers))

    browsers.site.before_click = before


def opened(folder: Path, text: str | None = TEXT, **more: Any) -> workshop.Workshop:
    """A workshop with this draft."""
    return workshops.opened(folder, SITE, text, **more)


def finish(shop: workshop.Workshop, **given: Json) -> Awaitable[turn.Outcome]:
    """The tool, called with what is ``given``."""
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "It is done."}
    return workshops.call(shop, "finish", tools.kits(shop), **{**arguments, **given})


def left(shop: workshop.Workshop) -> tuple[str, str]:
    """The workflow that was left, and the notes."""
    return shop.wish.save.read_text(), leaving.notes_of(shop.wish.save).read_text()


async def test_a_build_that_is_done(tmp_path: Path, browsers: Browsers) -> None:
    """Accepted, it has passed as often as was asked for, each time in a fresh browser; what is left runs, and says how far it is proved."""
    shop = opened(tmp_path, inputs={"number": "1002"}, runs=3)
    outcome = await finish(shop)
    assert (outcome.error, browsers.opened, len(browsers.site.deeds)) == (None, 3, 3)
    value: Any = outcome.value
    assert (value["done"], value["proved"], len(value["runs"])) == (True, "full", 3)
    text, notes = left(shop)
    assert workflow.load(shop.wish.save).workflow == workflow.parse(TEXT, str(shop.wish.save)).workflow
    assert "# proved: full; 3 of 3 runs passed" in text
    for said in (shop.pen.conversation.id, "done in 3 of 3 runs", "It pays.", '"1002"'):
        assert said in notes
    for each in value["runs"]:
        past = shop.runs.past(each["run"])
        assert past is not None
        assert past.header is not None
        assert (past.header.parent, past.header.inputs["number"]) == (shop.pen.conversation.id, "1002")


async def test_no_head_claims_a_proof_for_another_text(tmp_path: Path, browsers: Browsers) -> None:
    """A mend takes the claim out of the head, and changes nothing else; of a file that says something else by now, or is gone, that is known."""
    shop = opened(tmp_path, runs=1)
    await finish(shop)
    file, session = shop.wish.save, shop.pen.conversation.id
    text = file.read_text()
    assert leaving.changed(file, session) is None
    mended = leaving.mended(text, "R1")
    assert [(was, now) for was, now in zip(text.splitlines(), mended.splitlines(), strict=True) if was != now] == [
        (
            "# proved: full; 1 of 1 runs passed in fresh browsers",
            "# proved: of the text before it was changed by a mend of run R1",
        )
    ]
    assert leaving.mended(TEXT, "R1") == TEXT
    file.write_text(mended)
    assert "it has changed since" in str(leaving.changed(file, session))
    assert not leaving.may_write(file, session)
    file.unlink()
    assert "not there" in str(leaving.changed(file, session))


async def test_a_file_is_left_as_it_was_written(tmp_path: Path, browsers: Browsers) -> None:
    """A byte order mark and ends of lines of another system stay as they are, and the file is still a workflow."""
    written = "\ufeff" + TEXT.replace("\n", "\r\n")
    shop = opened(tmp_path, written, runs=1)
    assert (await finish(shop)).error is None
    saved = shop.wish.save.read_bytes().decode()
    assert saved.startswith("\ufeff# Built by")
    assert saved.endswith(written.removeprefix("\ufeff"))
    assert "\n" not in saved.replace("\r\n", "")
    assert workflow.load(shop.wish.save).workflow.name == "Pays"


LACKING: dict[str, tuple[dict[str, Any], dict[str, Json], str]] = {
    "nothing is said": ({}, {"summary": " "}, "`summary` says nothing"),
    "no draft": ({"text": None}, {}, "there is no draft"),
    "no output": ({"text": TEXT.partition("output:")[0]}, {}, "has no `output`"),
    "an input of nobody's": ({"inputs": {"colour": "red"}}, {}, "`colour`"),
    "an input that does not fit": ({"inputs": {"number": [1]}}, {}, "input-type"),
    "a secret that is not set": ({"text": TEXT.replace("allowed_", "secrets: [WORD]\nallowed_")}, {}, "secret-missing"),
    "a file that is not there": (
        {"text": TEXT.replace("- {id: told", "- {id: used, type: group, use: x.yaml}\n  - {id: told")},
        {},
        "x.yaml",
    ),
}


@pytest.mark.parametrize("lacking", LACKING)
async def test_what_is_lacking_is_told_before_anything_runs(tmp_path: Path, browsers: Browsers, lacking: str) -> None:
    """A draft that lacks something is refused with the mend of it, without a run, and nothing is left."""
    given, said, words = LACKING[lacking]
    text = given.get("text", TEXT)
    shop = opened(tmp_path, **{**given, "text": None})
    if text is not None:
        # What a draft uses stands where the build looks for it, and not where the draft will be left.
        shop.desk = desk.Desk(shop.pen, callees.Texts({"x.yaml": TEXT}))
        shop.desk.write_draft(draft.Draft.of(text, callees.Texts({"x.yaml": TEXT})), reason="as given", by="model")
    outcome = await finish(shop, **said)
    assert outcome.error is not None
    assert (outcome.error["code"], browsers.opened, shop.wish.save.exists()) == ("not-finished", 0, False)
    assert words in outcome.told
    lacks = outcome.told.partition("it could say better:")[0]
    assert lacks.count("\n  ") == lacks.count("\n- ")


async def test_everything_that_is_lacking_is_told_at_once(tmp_path: Path, browsers: Browsers) -> None:
    """Several things that are lacking are told in one answer, and an output that was not wanted need only be spoken of."""
    shop = opened(tmp_path, TEXT.partition("output:")[0], inputs={"colour": "red"})
    outcome = await finish(shop, summary="")
    lacking, _heading, better = outcome.told.partition("it could say better:")
    assert lacking.count("\n- ") == 3
    assert "pay: nothing says that the deed succeeded" in better
    shop = opened(tmp_path / "b", TEXT.partition("output:")[0])
    outcome = await finish(shop, unproved="output: nothing was asked for")
    assert (outcome.error, browsers.opened) == (None, 2)


async def test_a_run_that_fails_ends_the_proof(tmp_path: Path, browsers: Browsers) -> None:
    """The first run that fails is the last: it is told with its step and the page, and that the run before it may have changed what it found; nothing is left."""

    def click(number: int) -> None:
        if number == 2:
            raise SiteError("not-actionable", "it is paid [page] already", evidence={"seen": "paid"})

    clicks(browsers, click)
    shop = opened(tmp_path, runs=3)
    outcome = await finish(shop)
    assert outcome.error is not None
    assert (outcome.error["code"], browsers.opened, shop.wish.save.exists()) == ("not-proved", 2, False)
    for words in (
        "proof run 2 of 3",
        "failed at pay",
        "Run 1 went well and run 2 did not",
        "not-actionable",
        "not executed: told",
    ):
        assert words in outcome.told
    assert "(page) already" in outcome.told
    assert "already" not in outcome.error["message"]


async def test_of_an_error_nothing_is_said_twice(tmp_path: Path, browsers: Browsers) -> None:
    """What stands in its message is not told again beside it; what does not is."""
    here = f"{SITE}/list?page=2"

    def elsewhere(_number: int) -> None:
        raise SiteError(
            "rule-failed", f'url "**page=2" does not hold; seen: {here!r}', phase="after",
            evidence={"rule": 'url "**page=2"', "wanted": "**page=2", "seen": here, "page": here, "waited": 2.0},
        )  # fmt: skip

    clicks(browsers, elsewhere)
    shop = opened(tmp_path)
    outcome = await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
    assert outcome.told.partition("the page, as")[0].count(here) == 1
    assert "waited: 2.0" in outcome.told


async def test_what_is_held_is_said(tmp_path: Path, browsers: Browsers) -> None:
    """Where deeds are held the draft is accepted as far as it came in every run: no deed was done, and headline, file and notes say so."""
    shop = opened(tmp_path, policy="hold")
    outcome = await finish(shop)
    value: Any = outcome.value
    assert (outcome.error, browsers.opened, browsers.site.deeds) == (None, 2, [])
    assert value["proved"] == "up to pay (held: ready, not done)"
    for text in left(shop):
        assert "up to" in text
        assert "held: ready, not done in 2 of 2 runs" in text
    assert "`not executed`" not in outcome.told


async def test_a_sign_in_that_is_held_is_no_proof(tmp_path: Path, browsers: Browsers) -> None:
    """Held where it seems only to sign in, a build is refused and told how a sign-in is written; where the model says that it is right so, it is accepted."""
    text = TEXT.replace("allowed_", "secrets: [WORD]\nallowed_").replace(
        "  - {id: pay",
        "  - {id: word, type: browser_action, action: fill, target: {label: Word}, value: '{{ secrets.WORD }}'}\n  - {id: pay",
    )
    shop = opened(tmp_path, text, policy="hold", known={"WORD": "tops3cret-word"})
    tried = await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
    assert (tried.error, "effect: idempotent" in tried.told) == (None, True)
    refused = await finish(shop)
    assert refused.error is not None
    assert "`pay`" in refused.told
    assert "effect: idempotent" in refused.told
    accepted = await finish(shop, unproved="pay does more than sign in")
    value: Any = accepted.value
    assert (accepted.error, value["not_executed"]) == (None, ["told"])
    assert "executed in no run: `told`" in left(shop)[1]


async def test_inputs_lead_to_no_other_site(tmp_path: Path, browsers: Browsers) -> None:
    """A draft is run with other inputs only on the sites that the person has named: no run is begun on another one."""
    shop = opened(tmp_path)
    for url, code in (("http://evil.test", "origin-not-named"), (SITE, None)):
        given = json.dumps({"base_url": url})
        outcome = await workshops.call(shop, "run_draft", tools.kits(shop), inputs=given, reason="try")
        assert (outcome.error or {}).get("code") == code
    assert browsers.opened == 1


async def test_a_deed_that_no_run_did_must_be_spoken_of(tmp_path: Path, browsers: Browsers) -> None:
    """A deed that no run reached, and an output that is always empty, are named; once the model speaks of them the runs that were made count, and the proof is not full."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: '{{ false }}'").replace("{{ told }}", "{{ told[:0] }}")
    shop = opened(tmp_path, text)
    kits = tools.kits(shop)
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "done"}
    refused = await workshops.call(shop, "finish", kits, **arguments)
    assert refused.error is not None
    assert "`pay`, `status`" in refused.told
    refused = await workshops.call(shop, "finish", kits, **{**arguments, "unproved": "payments are made elsewhere"})
    assert refused.error is not None
    assert browsers.opened == 2
    said = "pay: everything is paid; status is empty then"
    accepted = await workshops.call(shop, "finish", kits, **{**arguments, "unproved": said})
    value: Any = accepted.value
    assert (accepted.error, browsers.opened) == (None, 2)
    assert value["proved"] == "all but pay (never reached), status (always empty)"
    assert said in left(shop)[1]


async def test_runs_of_another_draft_do_not_count(tmp_path: Path, browsers: Browsers) -> None:
    """Runs that were made before an edit prove nothing of what stands there now: all are made anew."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: '{{ false }}'")
    shop = opened(tmp_path, text)
    kits = tools.kits(shop)
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "done"}
    await workshops.call(shop, "finish", kits, **arguments)
    shop.desk.write_draft(draft.Draft.of(TEXT), reason="it is paid now", by="model")
    accepted = await workshops.call(shop, "finish", kits, **arguments)
    value: Any = accepted.value
    assert (value["proved"], browsers.opened) == ("full", 4)
    assert value["effects"][0]["what"] == "done in 2 of 2 runs"


async def test_a_run_of_just_this_draft_counts_for_its_deeds(tmp_path: Path, browsers: Browsers) -> None:
    """What ``run_draft`` did with the same draft and inputs need not be done again to be proved; with other inputs it was another thing."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    for number, proved in (("7", "full"), ("8", None)):
        shop = opened(tmp_path / number, text, inputs={"number": "7"})
        await workshops.call(shop, "run_draft", tools.kits(shop), inputs=json.dumps({"number": number}), reason="try")
        shop.desk.write_draft(draft.Draft.of(text), reason="the same", by="model")
        if proved is None:
            clicks(browsers, _fails)
        outcome = await finish(shop)
        value: Any = outcome.value
        assert (value or {}).get("proved") == proved


USED = TEXT.replace("- {id: told,", "- {id: used, type: group, use: used.yaml}\n  - {id: told,")
SUM = "version: 1\nnodes: [{id: sum, type: transform, expr: %d}]\n"


def using(folder: Path, text: str, **more: Any) -> workshop.Workshop:
    """A workshop whose draft may use the files of its folder."""
    (folder / ".runops").mkdir(parents=True)
    shop = opened(folder, None, **more)
    shop.desk = desk.Desk(shop.pen, callees.Texts({"used.yaml": SUM % 1}))
    (folder / "used.yaml").write_text(SUM % 1)
    shop.desk.write_draft(draft.Draft.of(text, shop.desk.files), reason="as given", by="model")
    return shop


async def test_a_run_counts_only_for_the_files_that_it_used(tmp_path: Path, browsers: Browsers) -> None:
    """Once a file says something else that the draft uses, an earlier run of the same text was one of something else."""
    text = USED.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    for name, edited in (("same", False), ("other", True)):
        shop = using(tmp_path / name, text, inputs={"number": "7"})
        await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
        if edited:
            (tmp_path / name / "used.yaml").write_text(SUM % 2)
        fit = drafts.prepared(shop, drafts.as_saved(shop), {"number": "7"})
        assert [each.status for each in drafts.passed_before(shop, fit)] == ([] if edited else ["passed"])


async def test_a_run_counts_only_for_the_files_that_it_gave_to_the_site(tmp_path: Path, browsers: Browsers) -> None:
    """One that was written since is another one, also where the time stands there at which the old one was written."""
    given = (
        "- {id: give, type: browser_action, action: upload, target: {label: File}, files: given.txt}\n  - {id: told,"
    )
    shop = using(tmp_path, TEXT.replace("- {id: told,", given))
    file = tmp_path / "given.txt"
    file.write_text("one")
    await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
    fit = drafts.prepared(shop, drafts.as_saved(shop), {})
    assert len(drafts.passed_before(shop, fit)) == 1
    then = file.stat()
    file.write_text("two")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert drafts.passed_before(shop, fit) == []


async def test_what_an_earlier_run_yielded_counts_as_what_it_was(tmp_path: Path, browsers: Browsers) -> None:
    """Where that was empty, too, the output is always empty, and must be spoken of."""
    shop = opened(tmp_path, TEXT.replace("{{ told }}", "{{ told[:0] }}"))
    await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
    refused = await finish(shop)
    assert refused.error is not None
    assert "`status`" in refused.told


async def test_a_file_that_changes_during_the_proof_makes_it_none(tmp_path: Path, browsers: Browsers) -> None:
    """What is proved is what stands there at the end: the runs before the change prove nothing, and the next ``finish`` runs anew."""
    shop = using(tmp_path, USED)

    def click(number: int) -> None:
        if number == 2:
            (tmp_path / "used.yaml").write_text(SUM % 2)

    clicks(browsers, click)
    refused = await finish(shop)
    assert (refused.error or {}).get("code") == "not-proved"
    assert "was changed while it was proved" in refused.told
    assert not shop.wish.save.exists()
    assert (await finish(shop)).error is None
    assert browsers.opened == 4


async def test_what_was_done_on_the_bench_alone_proves_no_whole(tmp_path: Path, browsers: Browsers) -> None:
    """A deed that only the bench did is told as that: it must be spoken of like any other that no whole run did, and the proof is not full."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    shop = opened(tmp_path, text)
    loaded = workflow.parse(text, "draft.yaml")
    alone = trial.Trial(loaded, loaded.index["pay"][0], {}, url=SITE)
    fit = alone.prepare({"number": "7"})

    async def work(call: log.Call) -> turn.Outcome:
        await shop.runs.follow(call, lambda heard, _purse: running.begin(fit, shop.chosen, heard, part=alone))
        return turn.Outcome("done", "done")

    await deeds.done(shop.pen, "execute_nodes", {}, turn.Place(1, "1_execute_nodes", log.SESSION_THREAD, "a"), work)
    assert len(browsers.site.deeds) == 1
    whole = await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="all")
    assert "next: done on the bench and in no whole run: `pay`." in whole.told
    other = await workshops.call(shop, "run_draft", tools.kits(shop), inputs='{"number": "7"}', reason="another")
    assert "next:" not in other.told
    refused = await finish(shop)
    assert refused.error is not None
    assert "Done on the bench and in no whole run: `pay`." in refused.told
    outcome = await finish(shop, unproved="pay was tried alone")
    value: Any = outcome.value
    assert value["proved"] == "all but pay (never reached; done by itself on the bench, in no whole run)"
    shop.desk.write_draft(draft.Draft.of(text.replace("name: Pay}", "name: Pay all}")), reason="all", by="model")
    outcome = await finish(shop, unproved="pay was tried alone, as it was before")
    value = outcome.value
    assert value["proved"] == "all but pay (never reached)"


async def test_the_headline_hides_nothing_that_was_not_done(tmp_path: Path, browsers: Browsers) -> None:
    """Leaves that no run came to, or that failed in each and were passed over, and fields that stay empty, are named in it, though every deed was done."""
    more = (
        "  - {id: ask, type: browser_action, action: click, target: {text: Gone}, effect: read, on_error: continue}\n"
        "  - {id: each, type: iterate, over: '{{ told[:0] | list }}', as: it, nodes: [{id: look, type: browser_query, query: text, target: {test_id: status}}]}\n"
        "  - {id: later, type: browser_query, query: text, target: {test_id: status}, when: '{{ false }}'}\n"
    )
    clicks(browsers, lambda number: _fails(number) if number % 2 == 0 else None)
    text = TEXT.replace("output: {", f"{more}output: {{rest: '{{{{ told[:0] }}}}', ")
    shop = opened(tmp_path, text)
    outcome = await finish(shop, unproved="rest: there is none")
    value: Any = outcome.value
    assert outcome.error is None
    assert value["proved"] == (
        "all but ask (tried without success), look (executed in no run), later (executed in no run), rest (always empty)"
    )
    assert "done in 2 of 2 runs" in outcome.told


async def test_what_comes_from_an_error_page_is_no_proof(tmp_path: Path, browsers: Browsers) -> None:
    """Where the site answers with an error, a whole run says which steps were there, the end wants a word of them, and the headline names them."""
    browsers.site.status = 500
    shop = opened(tmp_path)
    ran = await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
    assert "error pages of the site: open (the site answered 500), told (read on an error page, 500)" in ran.told
    refused = await finish(shop)
    assert refused.error is not None
    assert "did on an error page of the site: `told`" in refused.told
    assert "On error pages: told: read on an error page, 500." in refused.told
    value: Any = (await finish(shop, unproved="told: the site is down")).value
    assert value["proved"] == "all but told (read on an error page, 500)"
    browsers.site.status = None
    later: Any = (await finish(shop)).value
    assert later["proved"] == "full"


async def test_a_check_that_held_before_the_deed_tells_nothing(tmp_path: Path, browsers: Browsers) -> None:
    """Where the ``verify`` of a deed holds before it in every run, it would hold without it, too: that is said with the deed."""
    text = TEXT.replace("description: Pays it.", "verify: [{text: paid, target: {test_id: status}}]")
    browsers.site.texts['=test_id="status"'] = "paid"
    outcome = await finish(opened(tmp_path, text))
    assert "pay: done in 2 of 2 runs; its `verify` held before it, too, and tells nothing" in outcome.told
    told = await finish(opened(tmp_path / "b", TEXT))
    assert "pay: done in 2 of 2 runs\n" in f"{told.told}\n"


async def test_what_no_run_could_prove_is_lacking(tmp_path: Path, browsers: Browsers) -> None:
    """An input of the person's that nothing reads, and an output that is the same whatever a run finds: once the model says why, it is taken."""
    text = TEXT.replace("/{{ inputs.number }}", "").replace("{{ told }}", "paid")
    shop = opened(tmp_path, text, inputs={"number": "7"})
    refused = await finish(shop)
    assert "nothing reads the input `number`" in refused.told
    assert "`status` of the output is the same whatever a run finds" in refused.told
    assert browsers.opened == 0
    assert (await finish(shop, unproved="number is not needed, and status is always the same")).error is None


async def test_a_whole_run_says_what_the_end_will_want(tmp_path: Path, browsers: Browsers) -> None:
    """How often the draft is run then, whether this run counts, what is lacking, and of what must be spoken; what the end refuses first is no less."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"").partition("output:")[0]
    shop = opened(tmp_path, text, inputs={"number": "8"})
    run = {"inputs": None, "reason": "try"}
    tried = (await workshops.call(shop, "run_draft", tools.kits(shop), **run)).told
    assert (
        "`finish` runs this draft 2 times anew with the wish's inputs. Lacking for it: the draft has no `output`."
        in tried
    )
    assert (
        "What this one did counts there, too. Unless a run does or yields it, name in `unproved`, with why: `pay`"
        in tried
    )
    refused = (await finish(shop)).told
    assert "the draft has no `output`" in refused
    assert "never did, or always left empty: `pay`" in refused
    other = await workshops.call(shop, "run_draft", tools.kits(shop), **{**run, "inputs": '{"number": "7"}'})
    assert "This run, with other inputs, does not count there." in other.told
    shop.desk.write_draft(draft.Draft.of(TEXT), reason="pays each", by="model")
    whole = (await workshops.call(shop, "run_draft", tools.kits(shop), **run)).told
    assert whole.endswith("with the wish's inputs. What this one did counts there, too.")


def _fails(_number: int) -> None:
    raise SiteError("not-actionable", "it cannot be clicked")


async def test_giving_up_leaves_what_there_is(tmp_path: Path, browsers: Browsers) -> None:
    """A build that cannot be done ends with the draft as far as it came, its failing step and why, in a file that says that it is not finished."""
    clicks(browsers, _fails)
    shop = opened(tmp_path)
    failed = await workshops.call(shop, "run_draft", tools.kits(shop), inputs=None, reason="try")
    assert failed.error is not None
    outcome = await finish(shop, done=False, summary="There is no button.")
    value: Any = outcome.value
    assert (outcome.error, value["done"], value["failing"]) == (None, False, "pay")
    text, notes = left(shop)
    assert "NOT FINISHED: it fails at pay (not-actionable)" in text
    assert "There is no button." in notes
    assert workflow.load(shop.wish.save).workflow.name == "Pays"
    empty = await finish(opened(tmp_path / "b", None), done=False, summary="No.")
    assert (empty.error, empty.value["file"]) == (None, None)


async def test_what_stood_there_is_not_overwritten(tmp_path: Path, browsers: Browsers) -> None:
    """A file of somebody's is left alone: the build is refused before it runs, a partial draft is put beside it, and only ``--force`` writes over it."""
    shop = opened(tmp_path)
    shop.wish.save.write_text("mine")
    leaving.notes_of(shop.wish.save).write_text("mine, too")
    refused = await finish(shop)
    assert (refused.error is not None, browsers.opened) == (True, 0)
    partial = await finish(shop, done=False)
    value: Any = partial.value
    assert Path(value["file"]).name == "built.partial.yaml"
    assert left(shop) == ("mine", "mine, too")
    forced = opened(tmp_path / "b")
    forced.wish = dataclasses.replace(forced.wish, force=True)
    forced.wish.save.write_text("old")
    assert (await finish(forced)).error is None
    assert "proved: full" in forced.wish.save.read_text()


@pytest.mark.parametrize("proved", [True, False])
async def test_a_draft_that_is_not_done_takes_the_place_of_nothing(
    tmp_path: Path, browsers: Browsers, proved: bool
) -> None:
    """Not even where the person would have it written over, be it somebody's or what this build itself had proved: it is left beside it, and that is said."""
    shop = opened(tmp_path)
    shop.wish = dataclasses.replace(shop.wish, force=True)
    shop.wish.save.write_text("mine")
    if proved:
        assert (await finish(shop)).error is None
    before = shop.wish.save.read_bytes()
    partial = await finish(shop, done=False, summary="It cannot be.")
    value: Any = partial.value
    assert (Path(value["file"]).name, shop.wish.save.read_bytes()) == ("built.partial.yaml", before)
    assert value["stays"] == str(shop.wish.save)
    assert f"{shop.wish.save} is as it was" in partial.told
    assert "NOT FINISHED" in Path(value["file"]).read_text()


async def test_an_interrupted_proof_says_what_ran(tmp_path: Path, browsers: Browsers) -> None:
    """A ``finish`` that a crash broke off tells which of its runs were over and at which step the last one was, is told as interrupted, and proves anew."""

    class Died(BaseException):
        pass

    def click(number: int) -> None:
        if number == 2:
            raise Died

    clicks(browsers, click)
    shop = opened(tmp_path)
    with pytest.raises(Died):
        await finish(shop)
    call = next(each.call for each in shop.pen.history.open_calls())
    found = tools.kits(shop)[1].find_out(call)
    assert found is not None
    assert found.error is not None
    assert (found.error["code"], found.value) == ("interrupted", None)
    assert re.search(
        r"run 1 \(\w+\): passed; run 2 \(\w+\): \w+.* at pay, which may have happened", found.error["message"]
    )
    assert tools.kits(shop)[0].find_out(call) is None
    assert (await finish(shop)).error is None
    assert browsers.opened == 4


async def test_nothing_that_is_left_holds_a_secret(tmp_path: Path, browsers: Browsers) -> None:
    """Of a secret that a page shows nothing stands in the workflow, in the notes, or in what is told."""
    browsers.site.texts['test_id="status"'] = "it is tops3cret-word"
    text = TEXT.replace("allowed_", "secrets: [WORD]\nallowed_")
    shop = opened(tmp_path, text, known={"WORD": "tops3cret-word"})
    outcome = await finish(shop, summary="The word is tops3cret-word.")
    assert outcome.error is None
    for each in (*left(shop), outcome.told, json.dumps(outcome.value)):
        assert "tops3cret" not in each


async def test_page_text_breaks_out_of_no_note(tmp_path: Path, browsers: Browsers) -> None:
    """What a page or a model said is no heading, no link and no end of a block in the notes."""
    evil = "ok\n```\n# Proved by nobody\n[x](http://evil.test) <script>"
    browsers.site.texts['test_id="status"'] = evil
    shop = opened(tmp_path)
    outcome = await finish(shop, summary=evil)
    assert outcome.error is None
    notes = left(shop)[1]
    assert "\n# Proved by nobody" not in notes
    came = notes.partition("## What came of it")[2].partition("##")[0]
    for marks in ("[x](", "<script", "```"):
        assert marks not in came.replace("\\<", "")


TEXTS = st.text(st.sampled_from("a: {}\n\r#é\ufeff'"), max_size=40)


@hypothesis.given(TEXTS, st.sampled_from(["", "\ufeff"]), st.sampled_from(["\n", "\r\n"]), st.lists(TEXTS, max_size=3))
def test_a_head_changes_nothing_of_a_file(rest: str, mark: str, end: str, lines: list[str]) -> None:
    """A head is comments only: what stands behind it is as it was, byte for byte, with its byte order mark and the ends of its lines."""
    text = mark + rest.lstrip("\ufeff").replace("\n", end)
    written = leaving.workflow("S1", text, lines)
    assert written.startswith(mark)
    assert written.endswith(text.removeprefix(mark))
    head = written.removeprefix(mark).removesuffix(text.removeprefix(mark))
    assert all(each.startswith("#") for each in re.split(r"\r\n|\n|\r", head) if each)


@hypothesis.given(
    TEXTS.filter(lambda each: not each.startswith("\ufeff")), st.integers(0, 1000), st.sampled_from("xé# ")
)
def test_an_edited_file_is_somebody_elses(
    tmp_path_factory: pytest.TempPathFactory, text: str, at: int, more: str
) -> None:
    """A build may write over just what it has left, and not over that with one character more, nor over what another build has left."""
    file = tmp_path_factory.getbasetemp() / "left.yaml"
    written = leaving.workflow("S1", text, ["proved: full"])
    leaving.write(file, written)
    assert leaving.may_write(file, "S1")
    assert not leaving.may_write(file, "S2")
    at %= len(written) + 1
    file.write_bytes(f"{written[:at]}{more}{written[at:]}".encode())
    assert not leaving.may_write(file, "S1")


def test_a_link_to_nowhere_is_somebodys(tmp_path: Path) -> None:
    """A link that leads nowhere is not written through, nor over."""
    file = tmp_path / "x.yaml"
    file.symlink_to(tmp_path / "gone.yaml")
    assert not leaving.may_write(file, "S1")
    assert leaving.partial_name(file, "S1") == tmp_path / "x.partial.yaml"


def test_a_draft_that_is_not_done_takes_no_place_of_a_proved_one(tmp_path: Path) -> None:
    """A further word to a build that was done may come to nothing: what it had proved stays."""
    file = tmp_path / "x.yaml"
    leaving.write(file, leaving.workflow("S1", "version: 1\n", ["NOT FINISHED: `a` fails"]))
    assert leaving.partial_name(file, "S1") == file
    leaving.write(file, leaving.workflow("S1", "version: 1\n", ["proved: full"]))
    assert leaving.may_write(file, "S1")
    assert leaving.partial_name(file, "S1") == tmp_path / "x.partial.yaml"


def test_the_tools_are_small(tmp_path: Path) -> None:
    """Each has a strict schema, and says why it is called."""
    for kit in tools.kits(opened(tmp_path, None)):
        schema = kit.tool.parameters
        assert schema["required"] == list(schema["properties"])
        assert "reason" in schema["properties"]
        assert kit.modes == frozenset[log.Mode]({"agent"})
