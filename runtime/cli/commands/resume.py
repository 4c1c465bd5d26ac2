"""``runops resume``: resumes a run."""

from __future__ import annotations

from runtime.cli import flags, foreground_run
from runtime.workspace import host, run_index


def resume(
    run: flags.RunArgument,
    allow_changed: flags.AllowChangedFlag = False,
    take_over: flags.TakeOverFlag = False,
    from_step: flags.FromFlag = None,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
    budget: flags.BudgetFlag = None,
    model_calls: flags.ModelCallsFlag = None,
) -> None:
    """Resume a run that was killed, interrupted, paused, or failed. What is done is not done again.

    It continues with the text it began with. With `--allow-changed` it takes its file as it is now: what did not finish may be changed at will, and what
    did is done again where nothing that is done depends on it. An action that must not be done twice stays as it was.

    A run that a living process holds is left to it. With `--take-over` that process is ended, with all that it does, also where it is stopped or stuck; the
    run continues here, in its browser where that is still there.

    Where its browser is gone, what came after the last checkpoint is done again, to come to the page. Where the site has moved on, so that such a step cannot be
    done again, `--from STEP` leaves out what is before the step. Choose one that begins with its own `goto`.

    One that is out of budget continues with a larger one (`--budget`): what it has spent counts.

    A run that passed prints its result once more. A paused one asks its question, unless it is answered (`runops decide`, `runops answer`).
    """
    here = host.load(headed=headed, keep_browser=keep_browser, linger=linger, budget=budget, model_calls=model_calls)
    run_id = run_index.find(here.kept, run)
    foreground_run.go_on(
        here,
        run_id,
        as_json=as_json,
        quiet=quiet,
        allow_changed=allow_changed,
        take_over=take_over,
        from_step=from_step,
    )
