"""``runops doctor``: checks of this machine, which change nothing and use no network, and of the model server."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Mapping
from typing import Annotated

import typer

from nodes.errors import BudgetReached, RunOpsError, near
from nodes.values import Json
from runtime.cli import console, flags, installation, machine
from runtime.cli.machine import Check, State
from runtime.display import costs
from runtime.display.text import harmless, one_line
from runtime.log import ledger
from runtime.models import selection
from runtime.models.client import probing, profiles
from runtime.models.client.errors import Failed
from runtime.settings import places, settings
from runtime.workspace import host

MISSING = 3  # the exit code if something is missing
MOST_LISTED = 40  # models of a server that are listed for people; `--json` has all

COLOURS: dict[State, tuple[int, ...]] = {
    "ok": (32,),
    "note": (console.YELLOW,),
    "wrong": (console.BOLD, console.RED),
}

ROLES: tuple[selection.Role, ...] = ("cognition", "agent", "director", "summary")


def doctor(
    model: Annotated[bool, flags.option("--model", "Test the model server too, with a few tiny requests.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Check this machine: the browser and its driver, the folder for runs, disk, memory, clock, fonts, the settings, the models, what is installed.

    The network is used only with `--model`. Exit code 3 if something is missing, or if the server lacks an ability of its profile.
    """
    of_settings, config = _settings()
    here = host.of_command(config)
    checks = [
        asyncio.run(machine.browser(config)),
        machine.playwright(config.browser),
        machine.home(config.home),
        machine.room(config.home),
        machine.memory(),
        machine.clock(config.home),
        machine.fonts(),
        *of_settings,
        *models(here),
        installation.extras(),
        installation.encoding(),
        *installation.completion(),
        *installation.ci(config, os.environ),
    ]
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
    """Check the settings, and return them; if they are unusable, the defaults."""
    try:
        wrong = misspelt()
        config = settings.read()
    except RunOpsError as error:
        return [Check.failed("settings", error)], settings.Settings.model_construct(home=settings.find_home())
    given = sorted(name for name in config.model_fields_set if name in settings.Settings.model_fields)
    text = f"set: {', '.join(given)}" if given else "none is set, the defaults hold"
    return [Check("settings", "ok", text), *wrong], config


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
        names = list(dict.fromkeys(models_by_role(config).values()))
        if not names:
            fix = "set `model` to one of these" if listed else "set `model`"
            checks.append(Check("answer", "wrong", "no model is set, so none was asked", fix))
        answers = [await _answer(prober, name, listed) for name in names]
        checks += answers
        checks += [
            Check("end", "note", f"{name} is shut down on {date}, says the server", "set another model before then")
            for name in names
            if (date := (listed or {}).get(name)) is not None
        ]
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
        text = f"the server does not list its models: {failed.error.message}"
        return None, Check("list", "note", text, failed.error.fix or "look up their names at the provider")
    shown = ", ".join([*listed][:MOST_LISTED])
    more = f" and {len(listed) - MOST_LISTED} more (--json has all)" if len(listed) > MOST_LISTED else ""
    return listed, Check("list", "ok", f"the server has {shown}{more}")


async def _answer(prober: probing.Prober, name: str, listed: Mapping[str, str | None] | None) -> Check:
    try:
        named = await prober.answers(name)
    except Failed as failed:
        error = failed.error
        close = near(name, listed or ()) if name not in (listed or ()) else None
        fix = f"did you mean `{close}`?" if close else error.fix
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


def misspelt() -> list[Check]:
    """Report what every command refuses, and what has no effect although it begins like a setting."""
    return [
        *(
            Check(
                "settings",
                "wrong",
                f"{place.named} is no setting, and every command refuses it",
                f"did you mean {meant}?",
            )
            for place, meant in settings.misspelt()
        ),
        *(
            Check(
                "settings",
                "note",
                f"{place.named} is no setting, and has no effect unless a workflow names it as a secret",
                "if it is meant for RunOps, see which settings there are: runops config",
            )
            for place in places.strange(settings.Settings.model_fields)
        ),
    ]


def models_by_role(config: settings.Settings) -> dict[str, str]:
    return {role: selection.model_for(role, config) for role in ROLES if selection.is_set(role, config)}


def models(given: host.Host) -> list[Check]:
    config = given.settings
    by_role = models_by_role(config)
    if not by_role:
        fix = 'for workflows that ask one, set RUNOPS_MODEL, or `model = "…"` in [tool.runops] of pyproject.toml'
        return [Check("models", "ok", "none is set, and only a workflow that asks one needs it", fix)]
    uses: dict[str, list[str]] = {}
    for role, model in by_role.items():
        uses.setdefault(model, []).append(role)
    text = "; ".join(
        f"{model} for {'everything' if len(roles) == len(ROLES) else ', '.join(roles)}" for model, roles in uses.items()
    )
    found = [Check("models", "ok", text)]
    try:
        server = selection.server(config, given.secrets)
    except RunOpsError as error:
        return [*found, Check.failed("server", error)]
    key = "no key is set, and none is needed there" if server.key == selection.NO_KEY else "a key is set"
    by = "as set" if config.model_profile is not None else "by its address"
    place = settings.origin("model_base_url")
    where = "OpenAI's, as none is set" if place == "default" else f"from {place}"
    return [*found, Check("server", "ok", f"{server.base_url} ({where})  profile {server.profile.name} ({by}), {key}")]
