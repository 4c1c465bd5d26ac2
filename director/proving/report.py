"""Reports a whole run to the model: outcomes of its steps, its end with the cause, its output. Bounded; page text is fenced."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from director.effects import effects
from director.proving import checks, proofs
from director.scouting import given, relevance
from director.subjects import run_report
from nodes.values import Json
from runtime.browser import origins
from runtime.context import briefs
from runtime.engine import attempt, evidence
from runtime.language import workflow
from runtime.log import entries, history
from runtime.observation import page_text
from runtime.observation.wanted import wanted
from runtime.secrets import hidden_names
from runtime.system import regular_files

KEPT = ("screenshot", "observation", "signs")  # evidence that is shown otherwise, or in a file

OUTPUT, EVIDENCE, STEPS, PAGE = 1_500, 1_200, 800, 2_000
"""Limits in characters: of an output, of an error's details, of the steps with one outcome, and of the page where it failed."""

A_DETAIL = 400  # limit of an error's message, and of each item of its evidence, in characters

AN_ADDRESS = 160  # limit of the address to which an action led, in characters

A_GLANCE = 500  # limit of a page on which only the address was wrong, in characters

A_CONFIRM, A_READ, A_FAILURE = 300, 140, 160
"""Limits in characters: of what a ``confirm`` read, of each value in it, and of the error that ended it."""

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")

LEFT = "its last page, now on the bench:"

RESET = "The site was reset before it: what was seen of it before may have changed."

ASIDE = "The bench is as it was before this run with other inputs."

SIGNS_IN = "It seems to do nothing but sign in. If that is so, give it `effect: idempotent`: signing in twice does no harm, and it is done then."


def text_of(ran: proofs.Ran, loaded: workflow.Loaded) -> str:
    return "\n".join(_lines(ran, loaded))


def _lines(ran: proofs.Ran, loaded: workflow.Loaded) -> Iterator[str]:
    yield f"run {ran.run}: {head(ran)}"
    if ran.reset:
        yield f"{RESET} {ASIDE}" if ran.aside else RESET
    if ran.on_errors:
        yield f"error pages of the site: {cut(', '.join(f'{key} ({said})' for key, said in ran.on_errors.items()), STEPS)}"
    if ran.withheld is not None and effects.only_signs_in(loaded, ran.withheld):
        yield SIGNS_IN
    if ran.disagreed:
        yield f"in doubt: {cut(', '.join(f'{key} ({said})' for key, said in ran.disagreed.items()), STEPS)}"
    if ran.past is not None:
        yield from confirms([ran], loaded)
        yield from _steps(ran.past, loaded)
        yield from _hints(ran.past)
    yield from ran.short
    if ran.error is not None:
        yield _failure(ran.error)
        yield from _page_then(ran)
    if ran.status == "passed":
        yield "output:"
        yield page_text.fenced(in_short(ran.output, OUTPUT))
    if ran.page:
        yield LEFT
        yield page_text.fenced(ran.page)


def led_to(ran: proofs.Ran, loaded: workflow.Loaded, key: str) -> str:
    """Return where the site was right after an action that led to another address; else empty."""
    for each in reversed(ran.past.all_attempts() if ran.past is not None else []):
        before, page = each.call.url, each.result.page if each.result is not None else None
        if before is None or page is None or page.url is None or effects.key_of(loaded, each.call.path) != key:
            continue
        there = page.url.removeprefix(origins.origin(before) or "")
        return f", then at {cut(there, AN_ADDRESS)}" if page.url != before else ""
    return ""


def confirms(every: Sequence[proofs.Ran], loaded: workflow.Loaded) -> list[str]:
    """Return the fenced text of what ``by_confirm`` says of these runs, once for each action; empty if it says nothing."""
    found: dict[str, str] = {}
    for past in [each.past for each in every if each.past is not None]:
        for path, said in by_confirm(past).items():
            found.setdefault(effects.key_of(loaded, path), said)
    lines = "\n".join(f"{key}: {said}" for key, said in found.items())
    return [page_text.fenced(cut(lines, STEPS))] if lines else []


def by_confirm(past: history.History) -> dict[str, str]:
    """Return why a tried ``confirm`` could not tell, or what any read where it denies an action, by step path. It may be page text."""
    found: dict[str, str] = {}
    for each in past.confirms_tried:
        path, after = str(each["path"]), each["when"] == "after"
        if each["found"] == "unknown":
            found[path] = f"{'' if after else 'before it, '}{cut(one_line(str(each['how'])), A_FAILURE)}"
        elif after and each["found"] == "not-done" and (last := past.last(path)) is not None:
            found[path] = f"`confirm` read {_read(past, entries.CONFIRM + last.call.call)}"
    for each in past.all_attempts():
        thread = entries.CONFIRM + each.call.call
        if each.verdict == "not-done" and any(other.call.thread == thread for other in past.all_attempts()):
            found.setdefault(each.call.path, f"`confirm` read {_read(past, thread)}")
    return found


def _read(past: history.History, thread: str) -> str:
    """Return the values that one ``confirm`` read, in order: of each node the last, and of all those nearest to its end that fit."""
    values: dict[str, str] = {}
    for each in past.all_attempts():
        if each.call.thread != thread or each.call.node == "browser_action" or each.result is None:
            continue
        name = effects.static(each.call.path).rpartition("/")[2]
        values.pop(name, None)
        value = hidden_names.DEFAULT.json(each.result.value, name)
        values[name] = "…" if each.result.blob is not None else in_short(value, A_READ)
    parts = ["done = false"]
    for name, value in reversed(values.items()):
        said = f"{name} = {value}"
        if sum(map(len, parts)) + 2 * len(parts) + len(said) > A_CONFIRM - len("`confirm` read "):
            break
        parts.insert(0, said)
    return ", ".join(parts)


def in_short(value: Json, longest: int) -> str:
    """Return a value as JSON, shortened to about ``longest``: each field of a map, first and last item of a list, and the size."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= longest:
        return text
    if isinstance(value, list):
        items = [in_short(each, longest // 3) for each in (value[0], *value[1:][-1:])]
        return f"[{(', …, ' if len(value) > 2 else ', ').join(items)}] ({len(value)})"
    if isinstance(value, dict):
        wide = max(20, longest // len(value) - 20)
        fields = [f"{json.dumps(name, ensure_ascii=False)}: {in_short(each, wide)}" for name, each in value.items()]
        return f"{{{cut(', '.join(fields), longest)}}} ({len(value)} keys)"
    return f"{cut(one_line(str(value)), longest)} ({len(str(value)):,} characters)"


def head(ran: proofs.Ran) -> str:
    if ran.withheld is not None:
        return f"held at {briefs.ours(ran.withheld)}: ready, not done; later nodes were not executed"
    if ran.already is not None:
        return f"stopped before {briefs.ours(ran.already)}: `confirm` says that it is done already; later nodes were not executed"
    at = f" at {briefs.ours(ran.path)}" if ran.path else ""
    return f"{ran.status}{at} ({ran.seconds} s)"


def _steps(past: history.History, loaded: workflow.Loaded) -> Iterator[str]:
    """Yield the steps, one line for each outcome; steps in loops with the number of items."""
    fates: dict[str, Counter[str]] = {}
    for path in past.order:
        if (last := past.last(path)) is None:
            continue
        fate = last.result.status if last.result is not None else "open"
        if last.result is not None and last.result.tolerated:
            fate = "failed, and the run continued"
        fates.setdefault(effects.static(briefs.ours(path)), Counter())[fate] += 1
    lines: dict[str, list[str]] = {}
    for path, counts in fates.items():
        for fate, number in counts.items():
            lines.setdefault(fate, []).append(f"{path} ×{number}" if number > 1 else path)
    reached = {effects.key_of(loaded, path) for path in fates}
    left = effects.together(loaded, {key for _leaf, key in effects.leaves_of(loaded)} - reached)
    if left:
        lines["not executed"] = left
    for fate, paths in lines.items():
        yield f"{fate}: {cut(', '.join(paths), STEPS)}"


def _hints(past: history.History) -> Iterator[str]:
    """Yield the side effects whose ``verify`` proves nothing, with the fix."""
    flagged = [flag["path"] for flag in past.flags if flag["code"] == attempt.VERIFY_HELD_BEFORE]
    names = list(dict.fromkeys(effects.static(briefs.ours(path)) for path in flagged))
    if names:
        yield (
            f"hint: {attempt.VERIFY_HELD_BEFORE}: {cut(', '.join(names), STEPS)}. All rules of `verify` held just before the action, too, so they do not"
            " show that it did anything: name what only this action brings about, such as its own row, number or message"
        )
    yield from checks.fixes(past)
    if failed := checks.failed_before(past):
        names = list(dict.fromkeys(effects.static(briefs.ours(path)) for path in failed))
        yield f"hint: `confirm` failed before the action of {cut(', '.join(names), STEPS)}, so it can never say *not done*: a run that breaks off there asks a person"


def _failure(error: dict[str, Json]) -> str:
    """Return why a run did not pass; text that may come from a page is fenced."""
    code, (fix, _theirs) = error.get("code") or error.get("reason"), run_report.fix_of(error)
    why = f"why: {code} ({error.get('phase', 'before')} the action)\n{page_text.fenced(chr(10).join(details(error)))}"
    if error.get("reason") == "question":
        fix = "a run of a build cannot ask a person: use an input instead"
    return f"{why}\nfix: {fix}" if fix else why


def details(error: dict[str, Json], longest: int = EVIDENCE) -> Iterator[str]:
    """Yield the parts of an error that may be page text: message, fix, and evidence that the message does not contain."""
    message, known = str(error.get("message") or ""), error.get("evidence")
    fields: dict[str, Json] = known if isinstance(known, dict) else {}
    lines = [message, run_report.fix_of(error)[1]]
    lines += [
        f"{name}: {one_line(_plain(value))}"
        for name, value in fields.items()
        if name not in KEPT and not (isinstance(value, str) and value in message)
    ]
    for line in filter(None, lines):
        shown = cut(line, A_DETAIL)
        longest -= len(shown)
        if longest > 0:
            yield shown


def by_address(error: Mapping[str, Json]) -> bool:
    """Return whether an address rule failed: the action itself was done, so the page after it matters less."""
    known: dict[str, Json] = error.get("evidence") or {}
    return str(known.get("rule") or "").startswith("url ")


def _page_then(ran: proofs.Ran) -> Iterator[str]:
    kept = evidence.of(ran.past, ran.path) if ran.past is not None else None
    if kept is None:
        return
    address = by_address(ran.error or {})
    names = ("title", "dialog") if address else ("url", "title", "dialog")
    seen = [f"{name}: {kept[name]}" for name in names if kept.get(name)]
    named: dict[str, Json] = kept.get("observation") or {}
    with contextlib.suppress(OSError, UnicodeError, KeyError):
        page = regular_files.read_text(Path(named["path"]))
        seen.append(relevance.glance(page, A_GLANCE if address else PAGE, sought(ran.error or {})))
    if seen:
        yield "the page, as it was then:" if ran.page is None else "the page, still on the bench:"
        yield page_text.fenced("\n".join(seen))


def sought(error: Mapping[str, Json]) -> frozenset[str]:
    """Return the words that an error quotes: of its target or rule, and of what is like it."""
    known: dict[str, Json] = error.get("evidence") or {}
    said = "\n".join([str(error.get("message")), *(str(known[name]) for name in given.EVIDENCE if name in known)])
    return wanted(" ".join(_QUOTED.findall(said)))


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def one_line(text: str) -> str:
    return " ".join(text.split())
