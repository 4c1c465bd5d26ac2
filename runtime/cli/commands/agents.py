"""``runops agents``: the project's agents, which are delegates by name."""

from __future__ import annotations

from typing import Annotated

from nodes.errors import UsageError, near
from nodes.values import Json
from runtime.cli import console, flags
from runtime.display.text import cut, harmless, one_line
from runtime.language import agent_files
from runtime.language.agent_files import Agent

BESIDE = 100  # characters of a description in the list


def agents(
    words: Annotated[
        list[str] | None, flags.argument("[show NAME]", "An agent: all about it, with its instructions and tools.")
    ] = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """List the agents of this project, and check their files: `agents/NAME.yaml` beside `.runops`, pyproject.toml or `.git`.

    A model that works in a session can send them as delegates. `runops schema --of agent` describes the files.
    """
    name = _named(words or [])
    found = agent_files.of_project()
    if name is not None:
        agent = _found(found, name)
        console.result(console.as_json(agent=_as_json(name, agent)) if as_json else "\n".join(_shown(name, agent)))
        return
    if as_json:
        console.result(console.as_json(agents=[_as_json(each, agent) for each, agent in found.items()]))
        return
    if not found:
        console.say(f"no agents in {agent_files.folder()}")
        return
    rows = [
        [each, _does(agent), _begins(agent), cut(one_line(agent.description), BESIDE)] for each, agent in found.items()
    ]
    for line in console.table(rows):
        console.result(line)
    console.say("all about one:  runops agents show NAME")


def _named(words: list[str]) -> str | None:
    if words[:1] == ["show"]:
        words = words[1:]
        if not words:
            raise UsageError("usage", "`runops agents show` needs a name", fix="`runops agents` lists them")
    if len(words) > 1:
        raise UsageError("usage", "one agent at a time", fix=f"runops agents show {words[0]}")
    return words[0] if words else None


def _found(found: dict[str, Agent], name: str) -> Agent:
    if name not in found:
        close = near(name, found)
        fix = f"did you mean `{close}`?" if close else "`runops agents` lists them"
        raise UsageError("unknown-agent", f"there is no agent `{name[:80]}` in {agent_files.folder()}", fix=fix)
    return found[name]


def _does(agent: Agent) -> str:
    return "acts" if agent.acts else "looks"


def _begins(agent: Agent) -> str:
    return agent.context or "as sent"


def _as_json(name: str, agent: Agent) -> dict[str, Json]:
    fields: dict[str, Json] = agent.model_dump(mode="json")
    budget = str(agent.budget) if agent.budget is not None else None
    return {
        "name": name,
        "file": f"{agent_files.FOLDER}/{name}.yaml",
        **fields,
        "budget": budget,
        "tools": sorted(agent.names),
    }


def _shown(name: str, agent: Agent) -> list[str]:
    rows = {
        "does": _does(agent),
        "tools": ", ".join(sorted(agent.names)),
        "begins": _begins(agent),
        "delegates": f"{agent.delegates} levels below it" if agent.delegates else "none",
        "model": one_line(agent.model or "that of the session"),
        "budget": str(agent.budget or "as every delegate"),
        "output": f"at most {agent.max_output:,} tokens" if agent.max_output else "as every delegate",
    }
    prompt = [f"  {line}" for line in harmless(agent.prompt.strip()).split("\n")] if agent.prompt.strip() else []
    head = f"{name}  {one_line(agent.description)}"
    return [head, *(f"  {field:<9}  {value}" for field, value in rows.items()), *prompt]
