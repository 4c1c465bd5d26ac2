"""Asks for the command that puts the site's data back, before the first request of a build that may do side effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from director.cli import foreground
from director.cli import screen as screens
from director.effects import grants
from director.session import settings as session_settings
from director.tools.build_context import BuildContext
from runtime.log import entries

NO_RESET = "no reset: each run finds what the runs before it left; `--reset CMD` puts the site's data back before each whole run"

QUESTION = """\
Which command puts the site's data back (`--reset CMD`)? Your shell runs it before each whole run, so that each must do each action,
and what an earlier one did is undone. No model sees it. Enter: none"""

NOT_KEPT = "It contains a secret, and would be kept in the log. Have the command read it itself."


async def settle(
    conversation: foreground.Conversation,
    build: BuildContext,
    screen: screens.Screen,
    read: Callable[[], Awaitable[str | None]] | None,
) -> None:
    """Keep the command that the person types, if the build begins without one; ``read`` returns a line, None if nobody can be asked.

    Without a person it is only said once, so that nothing waits for an answer.
    """
    if not _is_open(build):
        return
    if read is None:
        screen.say(f"--  {NO_RESET}")
        return
    screen.asks(QUESTION)
    while build.masker.text(command := (await read() or "").strip()) != command:
        screen.asks(NOT_KEPT)
    # No command counts as an answer, too.
    session_settings.keep(build.state, {"reset": command})
    build.here = conversation.here = build.here.having(build.here.settings.model_copy(update={"reset": command}))


def _is_open(build: BuildContext) -> bool:
    goal = build.goal
    begun = bool(build.writer.history.thread(entries.SESSION_THREAD).said)
    known = build.here.settings.reset is not None or goal.repairs is not None
    local = goal.url is not None and grants.is_loopback(goal.url)
    return not (begun or known) and local and goal.policy != "hold"
