"""Follows runs that a person begins or resumes in a chat: reports them to the model, and charges the session's budget."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from director.session import runs
from director.subjects import run_report
from director.subjects import runs as run_subjects
from nodes.errors import LogError, UsageError
from runtime import events
from runtime.cli import foreground, foreground_run
from runtime.display import facts
from runtime.display.text import harmless
from runtime.log import entries
from runtime.runs import start
from runtime.runs.runtime import Run, Runtime
from runtime.system import tasks
from runtime.workspace import host

if TYPE_CHECKING:
    from director.cli.foreground import Conversation

Begin = Callable[[Runtime, events.Listener, start.Options], Awaitable[Run]]
"""Starts or resumes a run, given its listener and the session's options."""


def to_its_end(
    conversation: Conversation,
    front: foreground.Foreground,
    here: host.Host,
    what: str,
    begin: Begin,
    before: entries.Ran = runs.NOTHING,
) -> events.RunEnded | None:
    """Follow a run, show it in plain lines, and log its end; None if it was interrupted before it reported one.

    ``what`` is the message that begins it, ``before`` its spending until now. Raises ``signals.Interrupted``, and RunOpsError if it could
    not start.
    """
    run_id, began = "", False
    ended: events.RunEnded | None = None
    shown = conversation.screen.steps()

    async def begun(run: str) -> None:
        nonlocal run_id, began
        run_id, began = run, True
        await conversation.runs.begins(run, what, before)

    def listen(event: events.Event) -> None:
        nonlocal ended
        if isinstance(event, events.RunEnded):
            ended = event
        shown(event)

    async def carried() -> None:
        nonlocal run_id, ended
        options = conversation.runs.options(begun, before, background=conversation.background())
        async with Runtime.of(here) as carrier:
            with shown:
                ended = await (await begin(carrier, listen, options)).to_its_end()
            # A run that had already ended reports its end, but no beginning.
            run_id = ended.run

    try:
        front.run(carried())
    finally:
        if run_id:
            front.complete(_report(conversation, what, run_id, ended, before if began else None))
    return ended


async def _report(
    conversation: Conversation, what: str, run: str, ended: events.RunEnded | None, before: entries.Ran | None
) -> None:
    past = conversation.runs.past(run) if before is not None else None
    spent = conversation.runs.spent(past, before) if past is not None and before is not None else None
    await _tell(conversation, run, what, spent)
    if ended is not None:
        for line in foreground_run.closing(ended).split("\n"):
            conversation.screen.say(line)
        if ended.status == "passed" and ended.output is not None:
            for line in facts.result_text(ended.output).splitlines():
                conversation.screen.say(f"    {harmless(line)}")
        for command in foreground_run.next_step(ended).values() if ended.status != "passed" else ():
            if (word := word_for(command, run)) is not None:
                conversation.screen.say(f"  here  {word}")


def word_for(command: str, run: str) -> str | None:
    """Return the word of a session that does the same as a command about its run, if there is one."""
    word = re.sub(rf"runops (answer|decide|resume) {run}", r"/\1", command)
    return word if word.startswith("/") and "--" not in word else None


async def standing(conversation: Conversation) -> str | None:
    """Return where the run of the session waits for a person, and the word that continues it; None if it does not."""
    run = conversation.about.run
    if run is None:
        return None
    try:
        view = await tasks.in_thread(run_subjects.view, conversation.here.reader, run)
    except (UsageError, LogError):
        return None
    if view.report.next is None or (word := word_for(view.report.next, run)) is None:
        return None
    return f"{run_report.head(view)}\nhere  {word}"


async def _tell(conversation: Conversation, run: str, what: str, spent: entries.Ran | None) -> str:
    """Tell the model the run, and return a line for the person."""
    try:
        return f"{what}: {await conversation.tell_run(run, what, spent)}"
    except (UsageError, LogError):
        return await _lost(conversation, run, what)


async def _lost(conversation: Conversation, run: str, what: str) -> str:
    text = f"{what}: of run {run} nothing is known any more"
    await conversation.happened(text)
    return text


async def settle(conversation: Conversation) -> None:
    """Report the run that the session followed when its process died, and count its spending."""
    note = conversation.session.following
    if note is None:
        return
    run, what = str(note.data["run"]), str(note.data["what"])
    past = conversation.runs.past(run)
    if past is None:
        # Its log is gone or damaged: its spending is unknown.
        text = await _lost(conversation, run, what)
    else:
        spent = conversation.runs.spent(past, entries.Ran.model_validate(note.data["spent"]))
        text = await _tell(conversation, run, what, spent)
    conversation.screen.say(f"--  {text}")
