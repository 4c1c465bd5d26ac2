"""Buildbot with the builders of a shop: force one build and wait for its result."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

BUILDER = "webshop-linux"
STARTS = 3
START_SECONDS = 20.0
GOAL = Goal(
    "buildbot",
    "app",
    "Start a build of webshop-linux on the given branch with the given reason, wait until it is finished, and tell me the number of that build and its result.",
    inputs={"branch": "release/2.4", "reason": "Try the fix for vouchers"},
)
SECRETS: dict[str, str] = {}
PACKAGES = ("buildbot[bundle]==4.3.0", "buildbot-worker==4.3.0")
BUILDERS = {
    "android-app": "mobile",
    "ios-app": "mobile",
    "docs-website": "docs",
    "payments-linux": "payments",
    "payments-linux-nightly": "payments",
    "payments-windows": "payments",
    "webshop-linux": "webshop",
    "webshop-linux-arm": "webshop",
    "webshop-linux-nightly": "webshop",
    "webshop-windows": "webshop",
    "deploy-production": "deploy",
    "deploy-staging": "deploy",
}
"""The builders, and their tags."""
BRANCHES = ("main", "release/2.4", "release/2.3", "feature/wishlist")
REASONS = ("Try again", "Before the release", "Look at the slow tests", "New image of the machine")
RESULTS = ("success", "warnings", "failure", "skipped", "exception", "retry", "cancelled")
STATES = {0: "build successful", 2: "failed 'sh -c ...' (failure)"}
CONFIG = """
import os
from buildbot.plugins import schedulers, steps, util, worker

BUILDERS = {builders}
PAUSE = os.environ["PAUSE"]


def step(name, command):
    script = util.Interpolate(f"sleep {{PAUSE}}; branch='%(src::branch)s'; {{command}}")
    return steps.ShellCommand(name=name, command=["sh", "-c", script], haltOnFailure=True, logEnviron=False)


FACTORY = util.BuildFactory([
    step("sources", "echo got the sources of $branch"),
    step("compile", "echo 214 files compiled"),
    step("unit tests", "case $branch in feature/*) echo 412 passed, 3 failed; exit 1;; esac; echo 415 passed"),
    step("package", "echo package of $branch written"),
])
c = BuildmasterConfig = {{
    "title": "Shop",
    "titleURL": "http://127.0.0.1:{port}/",
    "buildbotURL": "http://127.0.0.1:{port}/",
    "buildbotNetUsageData": None,
    "protocols": {{"null": {{}}}},
    "db": {{"db_url": "sqlite:///state.sqlite"}},
    "workers": [worker.LocalWorker("first")],
    "builders": [
        util.BuilderConfig(name=name, tags=[tag], workernames=["first"], factory=FACTORY, collapseRequests=False)
        for name, tag in BUILDERS.items()
    ],
    "schedulers": [
        schedulers.ForceScheduler(
            name="force",
            buttonName="Start a build",
            label="Start a build",
            builderNames=list(BUILDERS),
            username=util.FixedParameter(name="username", default="office"),
            reason=util.StringParameter(name="reason", label="Reason", required=True, size=60),
            codebases=[util.CodebaseParameter(
                "",
                branch=util.StringParameter(name="branch", label="Branch", default="main"),
                revision=util.FixedParameter(name="revision", default=""),
                repository=util.FixedParameter(name="repository", default=""),
                project=util.FixedParameter(name="project", default=""),
            )],
            properties=[
                util.ChoiceStringParameter(name="suite", label="Tests", choices=["all", "quick", "none"], default="all"),
                util.BooleanParameter(name="clean", label="Begin with an empty folder", default=False),
            ],
        ),
    ],
    "www": {{
        "port": "tcp:{port}:interface=127.0.0.1",
        "plugins": {{"waterfall_view": {{}}, "console_view": {{}}, "grid_view": {{}}}},
    }},
}}
"""
SERVE = """
while rm -f state.sqlite*; cp "$SEED" state.sqlite
do "$BUILDBOT" start --nodaemon . & echo $! > pid; wait
done
"""
"""Begins from the first data each time; so a reset only ends the master."""


def install(home: Path) -> None:
    programs.python_packages(home, *PACKAGES)


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    master, seed, log = home / "master", home / "seed.sqlite", home / "log.txt"
    buildbot = str(home / "venv" / "bin" / "buildbot")
    url = f"http://127.0.0.1:{port}/api/v2/builders"
    settings = {"BUILDBOT": buildbot, "SEED": str(seed), "PAUSE": "1.5"}
    if not seed.exists():
        shutil.rmtree(master, ignore_errors=True)
        programs.ran([buildbot, "create-master", str(master)])
    (master / "master.cfg").write_text(CONFIG.format(builders=BUILDERS, port=port))
    if not seed.exists():
        first = programs.started([buildbot, "start", "--nodaemon", str(master)], log, None, **settings)
        try:
            programs.until_it_answers(url)
            while programs.asked(url)["meta"]["total"] < len(BUILDERS):
                time.sleep(0.2)
        finally:
            programs.ended([first])
        _history(master / "state.sqlite")
        shutil.copy(master / "state.sqlite", seed)
    serving = [programs.started(["sh", "-c", SERVE], log, master, **settings)]
    try:
        programs.until_it_answers(url)
    except BaseException:
        programs.ended(serving)
        raise
    return serving


def _history(database: Path) -> None:
    """Builds of the last weeks, as the master writes them, but for their logs."""
    drawn, when = random.Random(7), 1_794_300_000
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        ids = dict(connection.execute("SELECT name, id FROM builders"))
        numbers = dict.fromkeys(ids, 0)
        for stamp, branch in enumerate(BRANCHES, 1):
            connection.execute(
                "INSERT INTO sourcestamps (id, ss_hash, branch, created_at) VALUES (?, ?, ?, ?)",
                (stamp, hashlib.sha1(branch.encode(), usedforsecurity=False).hexdigest(), branch, when),
            )
        for one in range(1, 91):
            name = BUILDER if one % 4 == 0 else drawn.choice(sorted(set(BUILDERS) - {BUILDER}))
            stamp, when, result = drawn.randint(1, len(BRANCHES)), when + drawn.randint(3600, 5 * 3600), 0
            reason = f"A build was forced by 'office': {drawn.choice(REASONS)}"
            if BRANCHES[stamp - 1].startswith("feature/"):
                result = 2
            numbers[name] += 1
            connection.execute(
                "INSERT INTO buildsets (id, reason, submitted_at, complete, complete_at, results) VALUES (?, ?, ?, 1, ?, ?)",
                (one, reason, when, when + 8, result),
            )
            connection.execute(
                "INSERT INTO buildset_sourcestamps (buildsetid, sourcestampid) VALUES (?, ?)", (one, stamp)
            )
            connection.executemany(
                "INSERT INTO buildset_properties (buildsetid, property_name, property_value) VALUES (?, ?, ?)",
                [(one, "suite", '["all", "Force Build Form"]'), (one, "clean", '[false, "Force Build Form"]')],
            )
            connection.execute(
                "INSERT INTO buildrequests (id, buildsetid, builderid, complete, results, submitted_at, complete_at) VALUES (?, ?, ?, 1, ?, ?, ?)",
                (one, one, ids[name], result, when, when + 8),
            )
            connection.execute(
                "INSERT INTO builds (id, number, builderid, buildrequestid, workerid, masterid, started_at, complete_at, locks_duration_s, state_string, results) VALUES (?, ?, ?, ?, 1, 1, ?, ?, 0, ?, ?)",
                (one, numbers[name], ids[name], one, when, when + 8, STATES[result], result),
            )
            connection.execute("INSERT INTO build_properties VALUES (?, 'workername', '\"first\"', 'Worker')", (one,))
            connection.execute("INSERT INTO build_properties VALUES (?, 'owner', '\"office\"', 'Force')", (one,))


def reset(home: Path, port: int) -> None:
    pid = home / "master" / "pid"
    programs.until_it_answers(f"http://127.0.0.1:{port}/api/v2/builders", 60)
    for _start in range(STARTS):
        old = pid.read_text()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(old), signal.SIGKILL)
        while pid.read_text() in ("", old):
            time.sleep(0.1)
        if _has_its_worker(port):
            return
    raise programs.Failed(f"Buildbot did not start in {STARTS} attempts")


def _has_its_worker(port: int) -> bool:
    """Whether the worker is connected within 20 seconds: a page that is loaded before waits for ever, and a start in a hundred hangs."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            workers = programs.asked(f"http://127.0.0.1:{port}/api/v2/workers", seconds=2)["workers"]
            if all(each["connected_to"] for each in workers):
                return True
        time.sleep(0.1)
    return False


def state(home: Path, port: int) -> Json:
    database = home / "master" / "state.sqlite"
    builds = programs.rows(
        database,
        """
        SELECT builders.name AS builder, number, builds.results AS result, reason, branch,
            (SELECT property_value FROM buildset_properties AS each
                WHERE each.buildsetid = buildsets.id AND property_name = 'suite') AS suite,
            (SELECT property_value FROM buildset_properties AS each
                WHERE each.buildsetid = buildsets.id AND property_name = 'clean') AS clean
        FROM buildrequests LEFT JOIN builds ON builds.buildrequestid = buildrequests.id
            JOIN builders ON builders.id = buildrequests.builderid
            JOIN buildsets ON buildsets.id = buildrequests.buildsetid
            JOIN buildset_sourcestamps ON buildset_sourcestamps.buildsetid = buildsets.id
            JOIN sourcestamps ON sourcestamps.id = sourcestampid
        ORDER BY buildrequests.id
        """,
    )
    for each in builds:
        each["result"] = None if each["result"] is None else RESULTS[each["result"]]
    return {"builds": builds}


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    count = len(before["builds"])
    if after["builds"][:count] != before["builds"]:
        yield "earlier builds were changed"
    added = after["builds"][count:]
    if [each["builder"] for each in added] != [BUILDER]:
        yield f"the added builds are not one of {BUILDER}: {[each['builder'] for each in added]}"
        return
    build = added[0]
    if build["branch"] != inputs["branch"] or not build["reason"].endswith(f": {inputs['reason']}"):
        yield f"the build is of {build['branch']!r}, for the reason {build['reason']!r}"
    if not str(build["suite"]).startswith('["all"') or not str(build["clean"]).startswith("[false"):
        yield f"other fields were changed: {build['suite']}, {build['clean']}"
    said = " ".join(programs.texts(output)).lower()
    if not re.search(rf"(?<!\d){build['number']}(?!\d)", said):
        yield f"the output does not hold the number {build['number']}"
    if build["result"] is None or build["result"][:4] not in said:
        yield f"the output does not hold the result {build['result']}"
