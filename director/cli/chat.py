"""``runops chat``: a conversation about runs and workflows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from director.cli import flags as own
from runtime.cli import flags

if TYPE_CHECKING:
    from nodes.values import Json

AboutArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN|WORKFLOW",
        help="What it is about: a run (its id, a part of it, or `last`) or a workflow file.",
        show_default=False,
    ),
]
StrategyFlag = Annotated[
    Literal["injected", "clean", "hybrid"] | None,
    own.option(
        "--strategy",
        "What is told with each request: all that is kept; nothing, there are tools for it; or the plan and a line of status.",
    ),
]
OverflowFlag = Annotated[
    Literal["prune", "summarize"] | None,
    own.option("--overflow", "What becomes of the oldest that does not fit: left out, or summed up."),
]
DelegateFlag = Annotated[
    bool | None,
    own.option(
        "--delegate-clean/--delegate-inherit",
        "What a delegate begins with, where its call does not say: its task alone, or the conversation.",
    ),
]


def chat(
    about: AboutArgument = None,
    message: Annotated[str | None, own.option("--message, -m", "Say this, print the answer, and end.", "TEXT")] = None,
    resume: Annotated[str | None, own.resume("session")] = None,
    fork: Annotated[str | None, own.option("--fork", "Begin with what was said in a session.", "SESSION")] = None,
    mode: Annotated[
        Literal["chat", "agent", "run"] | None,
        own.option("--mode", "Talk; let the model work; or as a step of the run."),
    ] = None,
    strategy: StrategyFlag = None,
    strict: Annotated[bool, own.option("--strict", "A hard limit of 1,500 tokens: `--hard-limit 1500`.")] = False,
    hard_limit: Annotated[
        int | None, own.option("--hard-limit", "Of a whole request, never more; 0: none.", "TOKENS", min=0)
    ] = None,
    overflow: OverflowFlag = None,
    min_recent: Annotated[
        int | None, own.option("--min-recent", "So many of the newest messages are not summed up.", "N", min=1)
    ] = None,
    knowledge: Annotated[
        Path | None, own.option("--knowledge", "Markdown files; what fits a question is told with it.", "FOLDER")
    ] = None,
    top_k: Annotated[int | None, own.option("--top-k", "So many sections of them, at the most.", "N", min=0)] = None,
    max_messages: Annotated[
        int | None, own.option("--max-messages", "Of the conversation in a request; 0: no limit.", "N", min=0)
    ] = None,
    max_chars: Annotated[int | None, own.option("--max-chars", "The same in characters.", "N", min=0)] = None,
    tool_results: Annotated[
        bool | None,
        own.option("--tool-results/--no-tool-results", "Long outputs of tools, or pointers to them."),
    ] = None,
    recent_outputs: Annotated[
        int | None,
        own.option(
            "--recent-outputs",
            "Pointers in the place of outputs before the newest of the conversation; 0: nowhere.",
            "TOKENS",
            min=0,
        ),
    ] = None,
    events: Annotated[
        bool | None, own.option("--events/--no-events", "Tell what you did beside talking, or not.")
    ] = None,
    warn_at: Annotated[int | None, own.option("--warn-at", "Warn from there on.", "TOKENS", min=1)] = None,
    compress_at: Annotated[
        int | None, own.option("--compress-at", "Sum up the oldest before a request has more.", "TOKENS", min=1)
    ] = None,
    compress_to: Annotated[
        int | None, own.option("--compress-to", "Of a summary, at the most.", "TOKENS", min=1)
    ] = None,
    checkpoint_at: Annotated[
        int | None,
        own.option(
            "--checkpoint-at",
            "Sum up once so many were said since the last summary; 0: only where there is no room.",
            "TOKENS",
            min=0,
        ),
    ] = None,
    delegate_clean: DelegateFlag = None,
    model: Annotated[str | None, own.model("to talk with")] = None,
    budget: flags.BudgetFlag = None,
    take_over: Annotated[bool, flags.take_over("session")] = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
) -> None:
    """Talk with a model about a run or a workflow. Answers go to stdout, everything else to stderr.

    On a terminal you type; elsewhere each line of standard input is a word. `/help` lists the words that are for RunOps and not for the model.

    What is said is kept, and `--resume` continues with it. What a flag says of the window, of knowledge, delegates, model and budget holds for the session from then on.
    """
    given: dict[str, Json] = {
        "strategy": strategy,
        "hard_limit": _hard_limit(hard_limit, strict=strict),
        "overflow": overflow,
        "min_recent": min_recent,
        "top_k": top_k,
        "max_messages": max_messages,
        "max_chars": max_chars,
        "tool_results": tool_results,
        "recent_outputs": recent_outputs,
        "events": events,
        "warn_at": warn_at,
        "compress_at": compress_at,
        "compress_to": compress_to,
        "checkpoint_at": checkpoint_at,
    }
    from director.cli.session import foreground  # not needed for a help text
    from director.session import settings
    from runtime.workspace import host

    its = {"model_director": model, "delegate_clean_context": delegate_clean, "chat_knowledge": knowledge}
    here = host.load(budget=budget, **its)
    window = {name: value for name, value in given.items() if value is not None}
    kept = settings.given(here.settings, its)
    options = foreground.ChatOptions(about, message, resume, fork, mode, window, kept, take_over)
    foreground.converse(options, here, as_json=as_json, quiet=quiet)


def _hard_limit(given: int | None, *, strict: bool) -> int | None:
    """Return the meaning of the two flags together. Raises UsageError ``usage`` if they contradict each other."""
    if not strict:
        return given
    if given is not None:
        from nodes.errors import UsageError

        raise UsageError("usage", "`--strict` is a limit of its own beside `--hard-limit`", fix="leave one of them out")
    from runtime.context import window

    return window.STRICT
