"""``runops doctor``: checks of this machine, and of the model server's capabilities."""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import os
from collections.abc import Mapping
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

MISSING = 3  # the exit code if something is missing
MOST_LISTED = 40  # models of a server that are listed for people; `--json` has all

COLOURS: dict[environment_checks.State, tuple[int, ...]] = {
    "ok": (32,),
    "note": (console.YELLOW,),
    "wrong": (console.BOLD, console.RED),
}


def doctor(
    model: Annotated[bool, flags.option("--model", "Test the model server too, with a few tiny requests.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Check this machine: the browser and its driver, the folder for runs, disk space, the settings, the models.

    The network is used only with `--model`. Exit code 3 if something is missing, or if the server lacks an ability of its profile.
    """
    checks, config = _settings()
    browser = asyncio.run(environment_checks.browser(config))
    checks = [
        browser,
        environment_checks.playwright(),
        environment_checks.home(config.home),
        environment_checks.room(config.home),
        *checks,
    ]
    here = host.of_command(config)
    checks += environment_checks.models(here)
    asked: Json = None
    if model and all(each.state != "wrong" for each in checks if each.name in ("settings", "server")):
        try:
            found, asked = asyncio.run(_ask(config, selection.server(config, here.secrets)))
            checks += found
        except RunOpsError as error:
            checks.append(Check.failed("server", error))
    wrong = any(each.state == "wrong" for each in checks)
    if as_json:
        rows: list[Json] = [dataclasses.asdict(each) for each in checks]
        console.result(console.as_json(fit=not wrong, exit=MISSING if wrong else 0, checks=rows, server=asked))
    else:
        console.result("\n".join(line for each in checks for line in _lines(each)))
    if wrong:
        raise typer.Exit(MISSING)


def _settings() -> tuple[list[Check], settings.Settings]:
    """Check the settings, and return them; where they are unusable, those of a machine without settings."""
    try:
        config = settings.load()
    except RunOpsError as error:
        return [Check.failed("settings", error)], settings.Settings.model_construct(home=settings.find_home())
    given = sorted(name for name in config.model_fields_set if name in settings.Settings.model_fields)
    checks = [Check("settings", "ok", f"set: {', '.join(given)}" if given else "none is set, the defaults hold")]
    return [*checks, *environment_checks.misspelt(os.environ)], config


def _lines(check: Check) -> list[str]:
    lines = [f"{console.paint(f'{check.state:<5}', *COLOURS[check.state])}  {check.name:<10}  {one_line(check.text)}"]
    return [*lines, f"{'':<5}  {'':<10}  = {harmless(check.fix)}"] if check.fix else lines


async def _ask(config: settings.Settings, server: selection.Server) -> tuple[list[Check], Json]:
    """Check the server and its models; return the checks, and the facts about the server for JSON."""
    from runtime.models.client import client  # costs half a second
    from runtime.settings import prices

    prober = probing.Prober(
        lambda profile: client.Client(server.base_url, server.key, profile),
        config.model_timeout,
        lambda usage, name: prices.dollars(usage, name, config.prices, server.profile.name),
    )
    found: list[probing.Found] = []
    best = None
    try:
        listed, check = await _listed(prober)
        checks = [check]
        names = list(dict.fromkeys(environment_checks.models_by_role(config).values()))
        if not names:
            near = "set `model` to one of these" if listed else "set `model`"
            checks.append(Check("answer", "wrong", "no model is set, so none was asked", near))
        answers = [await _answer(prober, name, listed) for name in names]
        checks += answers
        checks += [_ending(name, date) for name in names if (date := (listed or {}).get(name)) is not None]
        if answers and answers[0].state == "ok":
            found = await prober.probe(names[0])
            best = probing.fitting(found, server.profile)
            checks += [_compared(each, server.profile, best) for each in found]
    finally:
        await prober.close()
    spent = ledger.totals(prober.spent) if prober.spent else None
    if spent is not None:
        checks.append(Check("cost", "ok", costs.render(spent)))
    return checks, {
        "url": server.base_url,
        "profile": server.profile.name,
        "listed": None if listed is None else [*listed],
        "shut_down": {name: date for name, date in (listed or {}).items() if date is not None},
        "found": {each.name: {"level": each.level, "why": each.why} for each in found},
        "fits": best.name if best is not None else None,
        "costs": spent,
    }


async def _listed(prober: probing.Prober) -> tuple[dict[str, str | None] | None, Check]:
    """Return the server's models with their shutdown dates, or None if it lists none."""
    try:
        listed = await prober.listed()
    except Failed as failed:
        return None, Check("list", "note", f"the server does not list its models: {failed.error.message}")
    shown = ", ".join([*listed][:MOST_LISTED])
    more = f" and {len(listed) - MOST_LISTED} more (--json has all)" if len(listed) > MOST_LISTED else ""
    return listed, Check("list", "ok", f"the server has {shown}{more}")


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
    text = f"{found.level or 'unknown'}: {found.why}"
    rank = probing.promised_rank(used, found.name)
    if found.rank < rank:
        fix = "ask again: `runops doctor --model`" if found.level is None else _set(best)
        said = probing.promised(used, found.name)
        return Check(found.name, "wrong", f"{text}; the profile {used.name} says {said}", fix)
    if probing.promised_rank(best, found.name) > rank:
        fix = f"{_set(best)} would use it ({probing.promised(best, found.name)})"
        return Check(found.name, "note", f"{text}; the profile {used.name} does not use it", fix)
    return Check(found.name, "ok", text)


def _set(profile: profiles.Profile) -> str:
    return f'`model_profile = "{profile.name}"` in [tool.runops] of pyproject.toml'
