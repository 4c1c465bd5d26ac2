"""``runops resume``: go on with a run."""

from __future__ import annotations

from runtime import runs, settings
from runtime.cli import execution, flags


def resume(
    run: flags.RunArgument,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
) -> None:
    """Go on with a run that was killed, interrupted, paused, or failed. What is done is not done again.

    A run that passed prints its result once more. A paused one asks its question, unless it is answered (`runops decide`, `runops answer`).
    """
    chosen = settings.load(headed=headed, keep_browser=keep_browser, linger=linger)
    run_id = runs.find(chosen, run)
    execution.go_on(chosen, run_id, as_json=as_json, quiet=quiet)
