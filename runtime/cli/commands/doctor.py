"""``runops doctor``: checks of this machine, and of the model server's capabilities."""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from nodes.errors import BudgetReached, RunOpsError
from nodes.values import Json
from runtime.cli import console, flags
from runtime.cli.commands import environment_checks
from runtime.cli.commands.environment_checks import Check
from runtime.display import costs
from runtime.display.text import harmless, one_line
from runtime.log import ledger
from runtime.models import selection
from runtime.models.client import probing, profiles
from runtime.models.client.errors import Failed
from runtime.settings import settings
from runtime.workspace import host

MISSING = 3
"""The exit code if something is missing."""

MOST_LISTED = 40
"""Models of a server that are listed for people; ``--json`` has all."""

COLOURS: dict[environment_checks.State, tuple[int, ...]] = {
    "ok": (32,),
    "note": (console.YELLOW,),
    "wrong": (console.BOLD, console.RED),
}


@dataclasses.dataclass(slots=True)
class Server:
    listed: dict[str, str | None] | None = None
    """The models that it lists, each with its shutdown date, if it names one; None if it does not list them."""
    found: list[probing.Found] = dataclasses.field(default_factory=list[probing.Found])
    fits: str | None = None
    """The name of the profile that fits it best; None if unknown."""
    costs: dict[str, Json] | None = None

    def as_json(self, server: selection.Server) -> dict[str, Json]:
        return {
            "url": server.base_url,
            "profile": server.profile.name,
            "listed": None if self.listed is None else list[Json](self.listed),
            "shut_down": {name: date for name, date in (self.listed or {}).items() if date is not None},
            "found": {each.name: {"level": each.level, "why": each.why} for each in self.found},
            "fits": self.fits,
            "costs": self.costs,
        }


def doctor(
    model: Annotated[
        bool, flags.option("--model", "Ask the models' server, too, what it has and can do: a few tiny requests.")
    ] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Say whether this machine is fit for runs: the browser and its driver, the folder that keeps them, room, the settings, the models.

    The network is used only with `--model`. Exit code 3 where something is missing, or where the server lacks what its profile says it can.
    """
    checks, chosen = _settings()
    browser = asyncio.run(environment_checks.browser(chosen))
    checks = [
        browser,
        environment_checks.playwright(),
        environment_checks.home(chosen.home),
        environment_checks.room(chosen.home),
        *checks,
    ]
    here = host.of_command(chosen)
    checks += environment_checks.models(here)
    told = Server()
    server = None
    if model and all(each.state != "wrong" for each in checks if each.name in ("settings", "server")):
        try:
            server = selection.server(chosen, here.secrets)
            checks += asyncio.run(_ask(chosen, server, told))
        except RunOpsError as error:
            checks.append(Check.failed("server", error))
    wrong = any(each.state == "wrong" for each in checks)
    if as_json:
        asked = told.as_json(server) if server is not None else None
        rows: list[Json] = [dataclasses.asdict(each) for each in checks]
        console.result(console.as_json(fit=not wrong, exit=MISSING if wrong else 0, checks=rows, server=asked))
    else:
        console.result("\n".join(line for each in checks for line in _lines(each)))
    if wrong:
        raise typer.Exit(MISSING)


def _settings() -> tuple[list[Check], settings.Settings]:
    """Check the settings, and return them; where they are unusable, those of a machine without settings."""
    try:
        chosen = settings.load()
    except RunOpsError as error:
        return [Check.failed("settings", error)], settings.Settings.model_construct(home=settings.find_home())
    given = sorted(name for name in chosen.model_fields_set if name in settings.Settings.model_fields)
    checks = [Check("settings", "ok", f"set: {', '.join(given)}" if given else "none is set, the defaults hold")]
    return [*checks, *environment_checks.misspelt(os.environ)], chosen


def _lines(check: Check) -> list[str]:
    lines = [f"{console.paint(f'{check.state:<5}', *COLOURS[check.state])}  {check.name:<10}  {one_line(check.text)}"]
    return [*lines, f"{'':<5}  {'':<10}  = {harmless(check.fix)}"] if check.fix else lines


async def _ask(chosen: settings.Settings, server: selection.Server, told: Server) -> list[Check]:
    from runtime.models.client import client  # costs half a second
    from runtime.settings import prices

    prober = probing.Prober(
        lambda profile: client.Client(server.base_url, server.key, profile),
        chosen.model_timeout,
        lambda usage, name: prices.dollars(usage, name, chosen.prices, server.profile.name),
    )
    try:
        checks = [await _listed(prober, told)]
        names = _models(chosen)
        if not names:
            near = "set `model` to one of these" if told.listed else "set `model`"
            checks.append(Check("answer", "wrong", "no model is set, so none was asked", near))
        answers = [await _answer(prober, name, told.listed) for name in names]
        checks += answers
        checks += [_ending(name, date) for name in names if (date := (told.listed or {}).get(name)) is not None]
        if answers and answers[0].state == "ok":
            told.found = await prober.probe(names[0])
            best = probing.fitting(told.found, server.profile)
            told.fits = best.name
            checks += [_compared(each, server.profile, best) for each in told.found]
    finally:
        await prober.close()
    if prober.spent:
        told.costs = ledger.totals(prober.spent)
        checks.append(Check("cost", "ok", costs.told(told.costs)))
    return checks


def _models(chosen: settings.Settings) -> list[str]:
    roles: Sequence[selection.Role] = ("cognition", "agent", "director", "summary")
    return list(dict.fromkeys(selection.model_for(role, chosen) for role in roles if selection.is_set(role, chosen)))


async def _listed(prober: probing.Prober, told: Server) -> Check:
    try:
        told.listed = await prober.listed()
    except Failed as failed:
        return Check("list", "note", f"the server does not list its models: {failed.error.message}")
    shown = ", ".join([*told.listed][:MOST_LISTED])
    more = f" and {len(told.listed) - MOST_LISTED} more (--json has all)" if len(told.listed) > MOST_LISTED else ""
    return Check("list", "ok", f"the server has {shown}{more}")


def _ending(name: str, date: str) -> Check:
    return Check("end", "note", f"{name} is shut down on {date}, says the server", "set another model before then")


async def _answer(prober: probing.Prober, name: str, listed: Mapping[str, str | None] | None) -> Check:
    try:
        named = await prober.answers(name)
    except Failed as failed:
        error = failed.error
        near = difflib.get_close_matches(name, listed or [], 1) if name not in (listed or ()) else []
        fix = f"did you mean `{near[0]}`?" if near else error.fix
        return Check("answer", "wrong", f"{name}: {error.message}", fix)
    except BudgetReached as reached:
        return Check("answer", "wrong", f"{name} was not asked: {reached.message}", "set fewer models")
    return Check("answer", "ok", f"{name} answers" if named == name else f"{name} answers, as {named}")


def _compared(found: probing.Found, used: profiles.Profile, best: profiles.Profile) -> Check:
    level = found.level or "unknown"
    said, could = probing.promised(used, found.name), probing.promised(best, found.name)
    text = f"{level}: {found.why}"
    if found.rank < probing.promised_rank(used, found.name):
        text = f"{text}; the profile {used.name} says {said}"
        if found.level is None:
            return Check(found.name, "wrong", text, "ask again: `runops doctor --model`")
        return Check(found.name, "wrong", text, _set(best))
    if probing.promised_rank(best, found.name) > probing.promised_rank(used, found.name):
        text = f"{text}; the profile {used.name} does not use it"
        return Check(found.name, "note", text, f"{_set(best)} would use it ({could})")
    return Check(found.name, "ok", text)


def _set(profile: profiles.Profile) -> str:
    return f'`model_profile = "{profile.name}"` in [tool.runops] of pyproject.toml'
