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
    typer.Option(
        "--strategy",
        help="What is told with each request: all that is kept; nothing, there are tools for it; or the plan and a line of status.",
        show_default=False,
    ),
]
OverflowFlag = Annotated[
    Literal["prune", "summarize"] | None,
    typer.Option(
        "--overflow", help="What becomes of the oldest that does not fit: left out, or summed up.", show_default=False
    ),
]
DelegateFlag = Annotated[
    bool | None,
    typer.Option(
        "--delegate-clean/--delegate-inherit",
        help="What a delegate begins with, where its call does not say: its task alone, or the conversation.",
        show_default=False,
    ),
]


def chat(
    about: AboutArgument = None,
    message: Annotated[
        str | None,
        typer.Option(
            "--message", "-m", metavar="TEXT", help="Say this, print the answer, and end.", show_default=False
        ),
    ] = None,
    resume: Annotated[str | None, own.resume("session")] = None,
    fork: Annotated[
        str | None,
        typer.Option("--fork", metavar="SESSION", help="Begin with what was said in a session.", show_default=False),
    ] = None,
    mode: Annotated[
        Literal["chat", "agent", "run"] | None,
        typer.Option("--mode", help="Talk; let the model work; or as a step of the run.", show_default=False),
    ] = None,
    strategy: StrategyFlag = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A hard limit of 1,500 tokens: `--hard-limit 1500`.")
    ] = False,
    hard_limit: Annotated[
        int | None,
        typer.Option(
            "--hard-limit", metavar="TOKENS", min=0, help="Of a whole request, never more; 0: none.", show_default=False
        ),
    ] = None,
    overflow: OverflowFlag = None,
    min_recent: Annotated[
        int | None,
        typer.Option(
            "--min-recent",
            metavar="N",
            min=1,
            help="So many of the newest messages are not summed up.",
            show_default=False,
        ),
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(
            "--knowledge",
            metavar="FOLDER",
            help="Markdown files; what fits a question is told with it.",
            show_default=False,
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", metavar="N", min=0, help="So many sections of them, at the most.", show_default=False),
    ] = None,
    max_messages: Annotated[
        int | None,
        typer.Option(
            "--max-messages",
            metavar="N",
            min=0,
            help="Of the conversation in a request; 0: no limit.",
            show_default=False,
        ),
    ] = None,
    max_chars: Annotated[
        int | None,
        typer.Option("--max-chars", metavar="N", min=0, help="The same in characters.", show_default=False),
    ] = None,
    tool_results: Annotated[
        bool | None,
        typer.Option(
            "--tool-results/--no-tool-results", help="Long outputs of tools, or pointers to them.", show_default=False
        ),
    ] = None,
    recent_outputs: Annotated[
        int | None,
        typer.Option(
            "--recent-outputs",
            metavar="TOKENS",
            min=0,
            help="Pointers in the place of outputs before the newest of the conversation; 0: nowhere.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        bool | None,
        typer.Option("--events/--no-events", help="Tell what you did beside talking, or not.", show_default=False),
    ] = None,
    warn_at: Annotated[
        int | None,
        typer.Option("--warn-at", metavar="TOKENS", min=1, help="Warn from there on.", show_default=False),
    ] = None,
    compress_at: Annotated[
        int | None,
        typer.Option(
            "--compress-at",
            metavar="TOKENS",
            min=1,
            help="Sum up the oldest before a request has more.",
            show_default=False,
        ),
    ] = None,
    compress_to: Annotated[
        int | None,
        typer.Option("--compress-to", metavar="TOKENS", min=1, help="Of a summary, at the most.", show_default=False),
    ] = None,
    checkpoint_at: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-at",
            metavar="TOKENS",
            min=0,
            help="Sum up once so many were said since the last summary; 0: only where there is no room.",
            show_default=False,
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
    from director.cli import session_options
    from director.cli.session import foreground
    from director.session import settings  # not needed for a help text
    from runtime.workspace import host

    its = {"model_director": model, "delegate_clean_context": delegate_clean, "chat_knowledge": knowledge}
    here = host.load(budget=budget, **its)
    window = {name: value for name, value in given.items() if value is not None}
    goal = session_options.ChatOptions(about, resume, fork, mode, window, settings.given(here.settings, its), take_over)
    foreground.converse(goal, here, message, as_json=as_json, quiet=quiet)


def _hard_limit(given: int | None, *, strict: bool) -> int | None:
    """Return the meaning of the two flags together. Raises UsageError ``usage`` if they contradict each other."""
    if not strict:
        return given
    if given is not None:
        from nodes.errors import UsageError

        raise UsageError("usage", "`--strict` is a limit of its own beside `--hard-limit`", fix="leave one of them out")
    from runtime.context import window

    return window.STRICT
