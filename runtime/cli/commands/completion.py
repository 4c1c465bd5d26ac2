"""``runops completion``: completion of command lines in a shell."""

from __future__ import annotations

from typing import Annotated

from nodes.errors import UsageError
from runtime.cli import completion_files, console, flags, scaffold
from runtime.display import escapes


def completion(
    shell: Annotated[
        completion_files.Shell | None, flags.argument("SHELL", "bash, zsh or fish; by default yours.")
    ] = None,
    install: Annotated[bool, flags.option("--install", "Write it where the shell finds it.")] = False,
) -> None:
    """Print the script that completes `runops` in a shell: commands, options and their values, workflow files, runs and sessions.

    To try it in the open shell: `source <(runops completion bash)`. With `--install` it is written to the file that the shell loads, and what
    is left to do is printed; no other file is changed. It is written once: an update of RunOps needs no new one.
    """
    named = shell or completion_files.own()
    if named is None:
        raise UsageError("usage", "the shell is none of bash, zsh and fish", fix="name one: runops completion bash")
    text = scaffold.template(f"completion_{named}.txt")
    if not install:
        console.result(text.rstrip())
        return
    file = completion_files.place(named)
    done = scaffold.put(file, text, force=True)
    console.result(f"{done.state}  {escapes.line(str(done.file))}")
    if (line := completion_files.line_to_add(named)) is not None:
        console.say(
            f"next: add this line to {completion_files.RC[named]}, if it has none like it, and open a new shell:\n  {line}"
        )
    else:
        console.say("next: open a new shell")
