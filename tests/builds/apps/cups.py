"""CUPS with fourteen queues that print to nowhere: some stopped, some with jobs that wait."""

from __future__ import annotations

import csv
import itertools
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    name="cups",
    site="app",
    goal="List the printers in the given wing that are stopped or have jobs waiting: name and location of each, and the number and the owner of each waiting job.",
    inputs={"wing": "North wing"},
    writes=False,
)
SECRETS: dict[str, str] = {}

_PRINTERS = {
    "archive-label": ("Basement, room 02", "Labels for boxes", ""),
    "archive-mono": ("Basement, room 03", "Came from the North wing", "stopped"),
    "canteen-mono": ("Canteen", "Menus", ""),
    "finance-color": ("North wing, room 114", "Color laser", ""),
    "finance-mono": ("North wing, room 114", "Mono laser", "stopped"),
    "front-desk": ("Northgate, lobby", "Badges and visitors", "stopped"),
    "gate-label": ("Northgate, dock 2", "Parcel labels", ""),
    "legal-color": ("South wing, room 208", "Color laser", ""),
    "legal-mono": ("North wing, room 208", "Mono laser", ""),
    "lab-label": ("South wing, lab", "Labels for samples", "stopped"),
    "media-plotter": ("North wing, room 301", "Posters up to A0", "rejecting"),
    "media-proof": ("North wing, room 301", "Proofs", "stopped"),
    "sales-color": ("South wing, room 117", "Color laser", ""),
    "school-mono": ("North wing, library", "Mono laser", ""),
}
"""Location, description, and what is wrong with each."""
_JOBS = (
    ("finance-color", "mira", "Budget 2026", ""),
    ("canteen-mono", "oleg", "Menu week 48", ""),
    ("finance-mono", "tomas", "Invoice run 2291", "waits"),
    ("legal-color", "ines", "Lease contract", "held"),
    ("legal-mono", "ines", "Lease contract, copy", "held"),
    ("finance-mono", "mira", "Invoice run 2292", "waits"),
    ("front-desk", "jonas", "Badges Tuesday", "waits"),
    ("gate-label", "oleg", "Parcels 801-840", ""),
    ("school-mono", "anouk", "Loan slips", ""),
    ("legal-mono", "tomas", "Power of attorney", "held"),
    ("lab-label", "anouk", "Samples 17 to 44", "waits"),
    ("finance-mono", "tomas", "Reminder letters", "waits"),
    ("media-plotter", "jonas", "Open day poster", ""),
    ("sales-color", "mira", "Price list", "held"),
)
"""Printer, owner, title, and why each is not printed, in the order of their numbers."""

_READING = "Get-Jobs Get-Job-Attributes Get-Printer-Attributes Get-Subscriptions CUPS-Get-Default CUPS-Get-Printers CUPS-Get-Classes"


def install(home: Path) -> None:
    programs.debian_packages("cups", "cups-client", "cups-ipp-utils", program="cupsd")


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    for name in ("etc", "run", "cache", "log", "spool/tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    if not (home / "cache" / "job.cache").exists():
        (home / "cache" / "job.cache").write_text("NextJobId 4180\n")
    (home / "etc" / "cupsd.conf").write_text(_server(home, port))
    (home / "etc" / "cups-files.conf").write_text(_files(home))
    files = ["-c", str(home / "etc" / "cupsd.conf"), "-s", str(home / "etc" / "cups-files.conf")]
    process = programs.started(["cupsd", "-f", *files], home / "log" / "cupsd")
    programs.until_it_answers(f"http://127.0.0.1:{port}/")
    return [process]


def reset(home: Path, port: int) -> None:
    """Make all anew where anything is different, with new numbers of jobs."""
    seed = home / "seed.json"
    if not seed.exists() or state(home, port) != json.loads(seed.read_text()):
        _fill(home, port)
        seed.write_text(json.dumps(state(home, port)))


def state(home: Path, port: int) -> Json:
    printers = _listed(
        port, "CUPS-Get-Printers", "printer-name,printer-location,printer-info,printer-state,printer-is-accepting-jobs"
    )
    jobs = _listed(
        port,
        "Get-Jobs",
        "job-id,job-printer-uri,job-originating-user-name,job-state",
        "ATTR keyword which-jobs all",
    )
    for job in jobs:
        job["printer"] = job.pop("job-printer-uri").rpartition("/")[2]
    return {"printers": printers, "jobs": jobs}


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    if before != after:
        yield "it changed printers or jobs, which it was only to read"
    text = json.dumps(output)
    jobs = [each for each in before["jobs"] if each["job-state"] != "completed"]
    busy = {each["printer"] for each in jobs}
    wanted = [
        each
        for each in before["printers"]
        if each["printer-location"].startswith(inputs["wing"])
        and (each["printer-state"] == "stopped" or each["printer-name"] in busy)
    ]
    names = {each["printer-name"] for each in wanted}
    said = {name for name in _PRINTERS if re.search(rf"\b{name}\b", text)}
    if said != names:
        yield f"the printers are {sorted(names)}, and it says {sorted(said)}"
    if missing := {each["printer-location"] for each in wanted if each["printer-location"] not in text}:
        yield f"these locations are missing: {sorted(missing)}"
    pairs = {each["job-id"]: each["job-originating-user-name"] for each in jobs if each["printer"] in names}
    known = {each["job-id"] for each in before["jobs"]}
    numbers = [each for each, _again in itertools.groupby(re.findall(r"\d+", text)) if each in known]
    owners = re.findall(rf"\b(?:{'|'.join({each[1] for each in _JOBS})})\b", text)
    if sorted(numbers) != sorted(pairs) or owners != [pairs[each] for each in numbers]:
        yield f"the waiting jobs and their owners are {pairs}, and it says {numbers} and {owners}"


def _listed(port: int, operation: str, names: str, more: str = "") -> list[dict[str, str]]:
    test = f"""{{
        OPERATION {operation}
        GROUP operation-attributes-tag
        ATTR charset attributes-charset utf-8
        ATTR language attributes-natural-language en
        ATTR uri printer-uri $uri
        {more}
        ATTR keyword requested-attributes {names}
        {" ".join(f"DISPLAY {each}" for each in names.split(","))}
    }}"""
    text = programs.ran(["ipptool", "-c", f"ipp://127.0.0.1:{port}/", "/dev/stdin"], given=test)
    return list(csv.DictReader(text.splitlines()))


def _fill(home: Path, port: int) -> None:
    def ran(*command: str, given: str = "") -> None:
        programs.ran([command[0], "-h", str(home / "run" / "socket"), *command[1:]], given=given)

    ran("cancel", "-a", "-x")
    for each in state(home, port)["printers"]:
        ran("lpadmin", "-x", each["printer-name"])
    for name, (location, info, _wrong) in _PRINTERS.items():
        ran("lpadmin", "-p", name, "-E", "-v", "file:///dev/null", "-m", "raw", "-L", location, "-D", info)
    for printer, owner, title, why in _JOBS:
        if why == "waits":
            ran("cupsdisable", printer)
        held = ["-H", "hold"] if why == "held" else []
        ran("lp", "-U", owner, "-d", printer, "-t", title, *held, given=f"{title}\n" * 200)
    for name, (_location, _info, wrong) in _PRINTERS.items():
        if wrong:
            ran("cupsdisable" if wrong == "stopped" else "cupsreject", name)
    printed = sum(not why for _printer, _owner, _title, why in _JOBS)
    end = time.monotonic() + 30
    while sum(each["job-state"] == "completed" for each in state(home, port)["jobs"]) < printed:
        if time.monotonic() > end:
            raise programs.Failed("the jobs that can be printed were not printed within 30 s")
        time.sleep(0.1)


def _server(home: Path, port: int) -> str:
    return f"""Listen 127.0.0.1:{port}
Listen {home}/run/socket
Browsing No
WebInterface Yes
DefaultAuthType Basic
LogLevel warn
MaxLogSize 0
PreserveJobHistory Yes
<Location />
  Order allow,deny
</Location>
<Policy default>
  JobPrivateAccess all
  JobPrivateValues none
  <Limit Create-Job Print-Job Validate-Job Send-Document Close-Job {_READING}>
    Order deny,allow
  </Limit>
  <Limit All>
    AuthType Default
    Require user @SYSTEM
    Order deny,allow
  </Limit>
</Policy>
"""


def _files(home: Path) -> str:
    names = {
        "ServerRoot": "etc",
        "StateDir": "run",
        "CacheDir": "cache",
        "RequestRoot": "spool",
        "TempDir": "spool/tmp",
    }
    logs = "".join(f"{name}Log {home}/log/{name.lower()}\n" for name in ("Access", "Error", "Page"))
    return (
        "FileDevice Yes\nSystemGroup root\n" + logs + "".join(f"{key} {home}/{name}\n" for key, name in names.items())
    )
