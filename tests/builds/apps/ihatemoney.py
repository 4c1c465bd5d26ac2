"""I hate money: the shared expenses of two groups at a lake house, this year's and last year's."""

from __future__ import annotations

import base64
import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    "ihatemoney",
    "app",
    "Open the project lake-house with its private code, add an expense with the given title and amount that the given payer paid for the given members only, and tell me the balance of the given person after that.",
    secrets=("LAKE_HOUSE_CODE",),
    inputs={
        "title": "Boat rental",
        "amount": "84.60",
        "payer": "Anna",
        "members": "Anne, Clara, Jon",
        "person": "Anne",
    },
)
SECRETS = {"LAKE_HOUSE_CODE": "Birch-Pier-64"}
"""The private code of the projects."""

PROJECTS = {"lake-house": 40, "lake-house-2025": 12}
"""The projects, with the number of their bills."""
MEMBERS = ("Anna", "Anne", "Ben", "Bernd", "Chiara", "Clara", "Jon", "Jonas")
TITLES = (
    "Groceries",
    "Boat fuel",
    "Bakery",
    "Boat rental deposit",
    "Restaurant",
    "Firewood",
    "Museum",
    "Train tickets",
)


def install(home: Path) -> None:
    """Install I hate money."""
    programs.python_packages(home, "ihatemoney==7.2.1")


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    """Start it without a limit of sign-ins and without mail; at the first time with a new database, that gets its bills."""
    settings = {
        "SQLALCHEMY_DATABASE_URI": f"sqlite:///{home / 'data.db'}",
        "SECRET_KEY": "made-up-for-builds-on-this-machine-only",
        "SESSION_COOKIE_SECURE": False,
        "ACTIVATE_DEMO_PROJECT": False,
        "RATELIMIT_ENABLED": False,
        "MAIL_SUPPRESS_SEND": True,
        "BABEL_DEFAULT_TIMEZONE": "UTC",
    }
    file = home / "ihatemoney.cfg"
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    new = not (home / "begin.db").exists()
    if new:
        (home / "data.db").unlink(missing_ok=True)
    program = str(programs.python_packages(home, "ihatemoney==7.2.1") / "ihatemoney")
    serve = [program, "run", "--host", "127.0.0.1", "--port", str(port)]
    process = programs.started(serve, home / "ihatemoney.log", IHATEMONEY_SETTINGS_FILE_PATH=str(file))
    try:
        programs.until_it_answers(f"http://127.0.0.1:{port}/healthcheck")
        if new:
            _filled(port)
            programs.copied(home / "data.db", home / "begin.db")
    except BaseException:
        programs.ended([process])
        raise
    return [process]


def reset(home: Path, port: int) -> None:
    """Copy the first database over the one in use."""
    del port
    programs.copied(home / "begin.db", home / "data.db")


def state(home: Path, port: int) -> Json:
    """Every bill of every project, and the balances of its members."""
    projects = programs.rows(home / "data.db", "select id from project order by id")
    found: dict[str, Any] = {}
    for name in (each["id"] for each in projects):
        people = {each["id"]: each["name"] for each in _asked(port, f"projects/{name}/members", name)}
        found[name] = {
            "members": sorted(people.values()),
            "bills": [
                {
                    "id": each["id"],
                    "title": each["what"],
                    "kind": each["bill_type"],
                    "amount": round(each["amount"], 2),
                    "payer": people[each["payer_id"]],
                    "members": sorted(person["name"] for person in each["owers"]),
                }
                for each in sorted(_asked(port, f"projects/{name}/bills", name), key=lambda each: each["id"])
            ],
            "balances": {
                each["member"]["name"]: round(each["balance"], 2)
                for each in _asked(port, f"projects/{name}/statistics", name)
            },
        }
    return found


def judged(before: Any, after: Any, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    """One bill more in that project, as it was wanted, and the balance said."""
    old, now = before["lake-house"], after["lake-house"]
    if {**before, "lake-house": None} != {**after, "lake-house": None}:
        yield "another project changed"
    if old["members"] != now["members"]:
        yield f"the members are {now['members']}"
    known = {each["id"] for each in old["bills"]}
    if [each for each in now["bills"] if each["id"] in known] != old["bills"]:
        yield "bills changed that were there before"
    new = [each for each in now["bills"] if each["id"] not in known]
    if len(new) != 1:
        yield f"it made {len(new)} bills"
        return
    wanted = {
        "title": inputs["title"],
        "kind": "Expense",
        "amount": float(str(inputs["amount"])),
        "payer": inputs["payer"],
        "members": sorted(str(inputs["members"]).split(", ")),
    }
    if wrong := {name: new[0][name] for name in wanted if new[0][name] != wanted[name]}:
        yield f"the bill stands there with {wrong}"
    balance = now["balances"][inputs["person"]]
    if not any(_number(each) == balance for each in programs.texts(output)):
        yield f"the balance is {balance:+.2f}, and it says {output}"


def _number(text: str) -> float | None:
    with contextlib.suppress(ValueError):
        return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").strip())
    return None


def _asked(port: int, path: str, project: str, body: Any = None) -> Any:
    password = base64.b64encode(f"{project}:{SECRETS['LAKE_HOUSE_CODE']}".encode()).decode()
    return programs.asked(f"http://127.0.0.1:{port}/api/{path}", body, headers={"Authorization": f"Basic {password}"})


def _filled(port: int) -> None:
    for project, bills in PROJECTS.items():
        made = {"id": project, "name": project.replace("-", " ").capitalize(), "password": SECRETS["LAKE_HOUSE_CODE"]}
        _asked(port, "projects", project, {**made, "contact_email": "house@example.com", "default_currency": "XXX"})
        ids = [_asked(port, f"projects/{project}/members", project, {"name": name}) for name in MEMBERS]
        for place in range(bills):
            bill = {
                "date": f"2026-{6 + place // 20:02}-{1 + place % 20:02}",
                "what": TITLES[place % len(TITLES)],
                "payer": ids[place * 3 % 8],
                "payed_for": [each for number, each in enumerate(ids) if (place + number) % 5],
                "amount": f"{12 + place * 37 % 90}.{place * 7 % 100:02}",
                "bill_type": "Expense",
            }
            _asked(port, f"projects/{project}/bills", project, bill)
