"""``runops chat``: a conversation about runs and workflows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from director.cli import flags as own
from runtime.cli import flags

AboutArgument = Annotated[
    str | None,
    flags.argument("RUN|WORKFLOW", "What it is about: a run (its id, a part of it, or `last`) or a workflow file."),
]
OverflowFlag = Annotated[
    Literal["prune", "summarize", "summarize-only"] | None,
    flags.option(
        "--overflow",
        "What becomes of the oldest that does not fit: left out; summed up, or left out without a summary; summed up, or nothing is sent.",
    ),
]
DelegateFlag = Annotated[
    bool | None,
    flags.option(
        "--delegate-clean/--delegate-inherit",
        "What a delegate begins with, where its call does not say: its task alone, or the conversation.",
    ),
]


def chat(
    ctx: typer.Context,
    about: AboutArgument = None,
    message: Annotated[str | None, flags.option("--message, -m TEXT", "Say this, print the answer, and end.")] = None,
    resume: Annotated[str | None, own.resume("session")] = None,
    fork: Annotated[str | None, flags.option("--fork SESSION", "Begin with what was said in a session.")] = None,
    mode: Annotated[
        Literal["chat", "agent", "run"] | None,
        flags.option("--mode", "Talk; let the model work; or as a step of the run."),
    ] = None,
    strategy: own.StrategyFlag = None,
    strict: Annotated[bool, flags.option("--strict", "A hard limit of 1,500 tokens: `--hard-limit 1500`.")] = False,
    hard_limit: Annotated[
        int | None, flags.option("--hard-limit TOKENS", "Of a whole request, never more; 0: none.", min=0)
    ] = None,
    shares: Annotated[
        str | None,
        flags.option(
            "--shares SHARES",
            "Of a hard limit, in percent: `system=10,state=40,conversation=43`, the rest stays free; and `summary=33` of the conversation's.",
        ),
    ] = None,
    overflow: OverflowFlag = None,
    min_recent: Annotated[
        int | None, flags.option("--min-recent N", "So many of the newest messages are not summed up.", min=0)
    ] = None,
    knowledge: Annotated[
        Path | None, flags.option("--knowledge FOLDER", "Markdown files; what fits a question is sent with it.")
    ] = None,
    top_k: Annotated[int | None, flags.option("--top-k N", "So many sections of them, at the most.", min=0)] = None,
    max_messages: Annotated[
        int | None, flags.option("--max-messages N", "Of the conversation in a request; 0: no limit.", min=0)
    ] = None,
    max_chars: Annotated[int | None, flags.option("--max-chars N", "The same in characters.", min=0)] = None,
    tool_results: Annotated[
        bool | None, flags.option("--tool-results/--no-tool-results", "Long outputs of tools, or pointers to them.")
    ] = None,
    recent_outputs: Annotated[
        int | None,
        flags.option(
            "--recent-outputs TOKENS",
            "Pointers in the place of outputs before the newest of the conversation; 0: nowhere.",
            min=0,
        ),
    ] = None,
    events: Annotated[
        bool | None, flags.option("--events/--no-events", "Tell what you did beside talking, or not.")
    ] = None,
    warn_at: Annotated[int | None, flags.option("--warn-at TOKENS", "Warn from there on.", min=1)] = None,
    compress_at: Annotated[
        int | None, flags.option("--compress-at TOKENS", "Sum up the oldest before a request has more.", min=1)
    ] = None,
    compress_to: Annotated[
        int | None, flags.option("--compress-to TOKENS", "Of a summary, at the most.", min=1)
    ] = None,
    checkpoint_at: Annotated[
        int | None,
        flags.option(
            "--checkpoint-at TOKENS",
            "Sum up once so many were said since the last summary; 0: only where there is no room.",
            min=0,
        ),
    ] = None,
    checkpoint_messages: Annotated[
        int | None,
        flags.option(
            "--checkpoint-messages N", "Sum up once so many messages came since the last summary; 0: never.", min=0
        ),
    ] = None,
    delegate_clean: DelegateFlag = None,
    url: own.UrlFlag = None,
    save: own.SaveFlag = None,
    force: own.ForceFlag = False,
    inputs: flags.InputFlag = None,
    secrets: own.SecretFlag = None,
    effects: own.EffectsFlag = None,
    reset: own.ResetFlag = None,
    runs: Annotated[int | None, own.runs("How often what is built must pass; by default 2.")] = None,
    model: Annotated[str | None, own.model("to talk with")] = None,
    store: own.StoreFlag = None,
    max_output: own.MaxOutputFlag = None,
    budget: flags.BudgetFlag = None,
    take_over: Annotated[bool, flags.take_over("session")] = False,
    as_json: flags.JsonFlag = False,
    json_lines: Annotated[
        bool, flags.option("--json-lines", "For a front end: messages come and events go as JSON, one object a line.")
    ] = False,
    quiet: flags.QuietFlag = False,
) -> None:
    """Talk with a model about a run or a workflow, and build one with it. Answers go to stdout, everything else to stderr.

    On a terminal you type; elsewhere each line of standard input is a word. `/help` lists the words that are for RunOps and not for the model.

    What is said is kept, and `--resume` continues with it. What a flag says of the window, of knowledge, delegates, model and budget holds for the session from then on.

    In mode agent the model can build: it looks at sites, edits a draft, tries it, and proves it; a workflow file is the draft to begin with. `--url`, `-i`, `--secret`, `--effects`, `--reset`, `--runs` and `--save` say how, as for `runops build`.
    """
    from director.cli.builds.options import BuildOrder
    from director.cli.session import foreground  # not needed for a help text
    from director.session import settings
    from nodes.errors import UsageError
    from runtime.context import limits, window
    from runtime.workspace import host

    if as_json and json_lines:
        raise UsageError("usage", "`--json` and `--json-lines` contradict each other", fix="leave one of them out")
    changed = {name: ctx.params[name] for name in limits.NAMES if ctx.params[name] is not None}
    if strict:
        if hard_limit is not None:
            raise UsageError(
                "usage", "`--strict` is a limit of its own beside `--hard-limit`", fix="leave one of them out"
            )
        changed["hard_limit"] = window.STRICT
    its = {
        "model_director": model,
        "model_store": store,
        "session_max_output": max_output,
        "delegate_clean_context": delegate_clean,
        "chat_knowledge": knowledge,
        "reset": reset,
    }
    here = host.load(budget=budget, **its)
    kept = settings.given(here.settings, its)
    order = BuildOrder(
        url=url,
        save=save,
        force=force,
        inputs=tuple(inputs or ()),
        secrets=tuple(secrets or ()),
        effects=effects,
        reset=reset,
        runs=runs,
    )
    options = foreground.ChatOptions(about, message, resume, fork, mode, changed, kept, take_over, order)
    foreground.converse(options, here, form="json-lines" if json_lines else "json" if as_json else "text", quiet=quiet)
