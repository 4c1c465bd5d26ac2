"""Follows runs that a person begins or resumes in a chat: reports them to the model, and charges the session's budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from director.session import runs
from nodes.values import Json
from runtime import events
from runtime.cli import foreground, foreground_run
from runtime.context import briefs
from runtime.display import display
from runtime.log import entries
from runtime.runs import start
from runtime.runs.runtime import Run, Runtime
from runtime.workspace import host, run_index

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
    shown: display.Display = display.Display() if conversation.screen.quiet else display.Plain(conversation.screen.talk)

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
        async with Runtime.of(here) as carrier:
            with shown:
                ended = await (await begin(carrier, listen, conversation.runs.options(begun, before))).to_its_end()
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
    status = ended.status if ended is not None else "interrupted"
    error = (ended.question or ended.error) if ended is not None else None
    past = conversation.runs.past(run) if before is not None else None
    spent = conversation.runs.spent(past, before) if past is not None and before is not None else None
    await conversation.happened(
        ending_text(what, run, status, ended.path if ended is not None else None, error), run, spent
    )
    if ended is not None:
        for line in foreground_run.closing(ended).split("\n"):
            conversation.screen.say(line)


async def settle(conversation: Conversation) -> None:
    """Report the run that the session followed when its process died, and count its spending."""
    note = conversation.session.following
    if note is None:
        return
    run, what = str(note.data["run"]), str(note.data["what"])
    past = conversation.runs.past(run)
    if past is None:
        # Its log is gone or damaged: its spending is unknown.
        text = f"{what}: of run {run} nothing is known any more"
        await conversation.happened(text)
    else:
        ending = past.ending.data if past.ending is not None else {}
        state = run_index.state_of(past, owned=conversation.here.reader.read(run).owned)
        text = ending_text(what, run, state, ending.get("path"), ending.get("error"))
        spent = conversation.runs.spent(past, entries.Ran.model_validate(note.data["spent"]))
        await conversation.happened(text, run, spent)
    conversation.screen.say(f"--  {text}")


def ending_text(what: str, run: str, status: str, path: str | None, error: dict[str, Json] | None) -> str:
    """Return the end of a run for the model, without page text (errors, keys in a path): that is shown only where it is marked as data."""
    code = (error or {}).get("code") or (error or {}).get("reason")
    where = f" at {briefs.ours(path)}" if path else ""
    return f"{what}: run {run} {status}{where}{f' ({code})' if code else ''}"
