"""``runops doctor``: checks of this machine, which change nothing and use no network, and of the model server."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import psutil
import typer

from nodes.errors import BudgetReached, RunOpsError, near
from nodes.values import Json
from runtime import version
from runtime.browser.chromium import find, launch
from runtime.cli import console, flags
from runtime.display import costs
from runtime.display.text import duration, harmless, one_line, size
from runtime.log import ledger
from runtime.models import selection
from runtime.models.client import probing, profiles
from runtime.models.client.errors import Failed
from runtime.settings import places, settings
from runtime.system import locks
from runtime.workspace import host

State = Literal["ok", "note", "wrong"]

MISSING = 3  # the exit code if something is missing
MOST_LISTED = 40  # models of a server that are listed for people; `--json` has all

COLOURS: dict[State, tuple[int, ...]] = {
    "ok": (32,),
    "note": (console.YELLOW,),
    "wrong": (console.BOLD, console.RED),
}

# Free bytes on a disk below which runs fail, and below which they soon may: a browser's profile, logs, files.
LEAST_ROOM, LITTLE_ROOM = 200_000_000, 1_000_000_000
# File systems that several machines may share: their locks may not be reliable.
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs"})
IN_MEMORY = frozenset({"tmpfs", "ramfs"})

ROLES: tuple[selection.Role, ...] = ("cognition", "agent", "director", "summary")


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """The result of one check: ``ok``; ``note``: it works, with a remark; ``wrong``: something is missing."""

    name: str
    state: State
    text: str
    fix: str | None = None

    @classmethod
    def failed(cls, name: str, error: RunOpsError) -> Check:
        return cls(name, "wrong", error.message, error.fix)


def doctor(
    model: Annotated[bool, flags.option("--model", "Test the model server too, with a few tiny requests.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Check this machine: the browser and its driver, the folder for runs, disk space, the settings, the models.

    The network is used only with `--model`. Exit code 3 if something is missing, or if the server lacks an ability of its profile.
    """
    checks, config = _settings()
    checks = [asyncio.run(browser(config)), playwright(), home(config.home), room(config.home), *checks]
    here = host.of_command(config)
    checks += models(here)
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
        return None, Check("list", "note", f"the server does not list its models: {failed.error.message}")
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


async def browser(config: settings.Settings) -> Check:
    try:
        path = find.find(config.browser)
        begun = time.monotonic()
        chromium = await launch.start(path, None, linger=0, headed=config.headed)
        took = time.monotonic() - begun
        await chromium.end()
    except RunOpsError as error:
        said = str(error.evidence.get("log", "")).strip().splitlines()
        return dataclasses.replace(Check.failed("browser", error), text=" – ".join([error.message, *said[-1:]]))
    return Check("browser", "ok", f"{path} starts in {duration(took)}")


def playwright() -> Check:
    found = version.untested()
    if found is not None:
        return Check("playwright", "note", *found)
    return Check("playwright", "ok", f"{version.playwright()} is one that RunOps is tested with")


def home(folder: Path) -> Check:
    place = _existing(folder)
    try:
        handle, name = tempfile.mkstemp(prefix=".doctor.", dir=place)
        try:
            os.write(handle, b"x")
            os.fsync(handle)
            locked = _locks(Path(name))
        finally:
            os.close(handle)
            Path(name).unlink()
    except OSError as error:
        fix = "make the folder writable for you, or set RUNOPS_HOME to one that is"
        return Check("home", "wrong", f"{folder} cannot be used: {place}: {error.strerror}", fix)
    kind = file_system(place)
    text = f"{folder}  {kind}" if place == folder else f"{folder}  {kind}, made by the first run"
    if not locked:
        text += ": a file there cannot be locked, so two processes could take one run"
        return Check("home", "wrong", text, "set RUNOPS_HOME to a folder on a disk of this machine")
    if kind in NETWORK:
        fix = "keep it on a disk of this machine, or let one machine alone use it"
        return Check("home", "note", f"{text}: a lock there may not hold for another machine", fix)
    if kind in IN_MEMORY:
        return Check("home", "note", f"{text}: what is kept there ends with the machine", "set RUNOPS_HOME to a disk")
    return Check("home", "ok", text)


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110 — never raises


def _locks(file: Path) -> bool:
    """True if a lock on the file is visible to another opener."""
    handle = locks.hold(file)
    if handle is None:
        return False
    try:
        return locks.is_held(file)
    finally:
        os.close(handle)


def file_system(folder: Path) -> str:
    """Return the kernel's name for the folder's file system; ``unknown`` if it has none."""
    real = folder.resolve()
    found = [each for each in psutil.disk_partitions(all=True) if real.is_relative_to(each.mountpoint)]
    # The later of two mounts at one place counts.
    best = max(enumerate(found), key=lambda each: (len(Path(each[1].mountpoint).parts), each[0]), default=None)
    return best[1].fstype or "unknown" if best is not None else "unknown"


def room(folder: Path) -> Check:
    places = list(dict.fromkeys((_existing(folder), Path(tempfile.gettempdir()))))
    free = {place: shutil.disk_usage(place).free for place in places}
    text = ", ".join(f"{size(number)} in {place}" for place, number in free.items())
    least = min(free.values())
    if least >= LITTLE_ROOM:
        return Check("room", "ok", f"free: {text}")
    state: State = "note" if least >= LEAST_ROOM else "wrong"
    return Check("room", state, f"little is free: {text}", "make room; `runops prune` deletes what no run needs")


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
            Check("settings", "note", f"{place.named} is no setting, and has no effect unless a workflow names it")
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
