"""Forty cases in two shards of four workers each: some fail, are flaky, wait for a person, or lose their worker by `kill -9`."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

from junitparser import xunit2

from tests import reports
from tests.command import Project
from tests.junit import checked
from tests.site import serve

FUNCTIONS = """\
import os, pathlib, signal, time, urllib.request

def first(name):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

def order(site, name):
    return urllib.request.urlopen(f"{site}/order?name={name}").read().decode()

def second_time(name):
    assert not first(f"tried-{name}"), "the first time"
    return "second"

def logs(home):
    return [file.read_text() for file in home.rglob("*.jsonl")]

def dies_once(name):
    if first(f"died-{name}"):
        home = pathlib.Path(os.environ["RUNOPS_HOME"])
        while not any(name in text and '"value":"taken"' in text for text in logs(home)):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"
"""
HEAD = "version: 1\n{head}inputs: {{site: {{type: string}}, n: {{type: string, default: {name}}}}}\nnodes:\n"
ORDER = '  - {{id: order, type: transform, python: "forty:order", args: {{site: "{{{{ inputs.site }}}}", name: "{name}-{{{{ inputs.n }}}}"}}}}\n'
THEN = {
    "passed": "",
    "failed": '  - {{id: broken, type: transform, expr: "{{{{ 1 // 0 }}}}"}}\n',
    "never": '  - {{id: broken, type: transform, expr: "{{{{ 1 // 0 }}}}"}}\n',
    "flaky": '  - {{id: try, type: transform, python: "forty:second_time", args: {{name: {name}}}}}\n',
    "paused": "  - {{id: ask, type: context, ask: {{sure: Really?}}}}\n",
    "killed": '  - {{id: survive, type: transform, python: "forty:dies_once", args: {{name: {name}}}}}\n',
}
"""What follows the order, by kind of case."""

NUMBERS = {"failed": 3, "never": 2, "flaky": 4, "paused": 4, "killed": 2}
ROWS = 25
FORMS = ("report", "junit", "events")
STATES = {"never": "failed", "killed": "passed"}
RUNS = {"failed": 2, "flaky": 2}
"""The runs that a case of that kind has with one retry."""


@dataclasses.dataclass
class Forty:
    project: Project
    kinds: dict[str, str]
    """The kind of each case."""
    shards: list[dict[str, Any]]
    errors: list[str]
    codes: list[int]
    orders: Counter[str]
    """How often the site was asked for each order."""
    left: list[dict[str, Any]]
    """What `--last-failed` runs in the home of each shard."""

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        return {run["case"]: run for shard in self.shards for run in shard["runs"]}


def run_forty(folder: Path) -> Forty:
    project = Project(folder)
    (folder / "flows").mkdir()
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["forty"]\n')
    project.write("forty.py", FUNCTIONS)
    project.write("rows.csv", "n\n" + "".join(f"{number}\n" for number in range(1, ROWS + 1)))
    kinds = {f"flows/many.yaml[{number}]": "passed" for number in range(1, ROWS + 1)}
    for kind, number in {**NUMBERS, "passed": 1}.items():
        for each in range(number):
            name = "many" if kind == "passed" else f"{kind}{each}"
            head = "rerun: never\n" if kind == "never" else ""
            text = (HEAD + ORDER + THEN[kind]).format(head=head, name=name)
            if kind != "passed":
                kinds[f"flows/{name}.yaml"] = kind
                text = text.replace(", n: {type: string", ", other: {type: string").replace("inputs.n", "inputs.other")
            project.write(f"flows/{name}.yaml", text)
    shards, errors, codes, left = list[Any](), list[str](), list[int](), list[Any]()
    with serve() as site:
        site.page("/order", "taken")
        for number in (1, 2):
            project.environment["RUNOPS_HOME"] = str(folder / f"home{number}")
            command = ["run", "flows", "--rows", "rows.csv", "-i", f"site={site.origin}", "--retries", "1", "--json"]
            reported = [each for form in FORMS for each in (f"--{form}", f"{number}.{form}")]
            project.environment["GITHUB_STEP_SUMMARY"] = str(folder / f"{number}.md")
            done = project.runops(
                *command, *reported, "--annotations", "on", "-j", "4", "--shard", f"{number}/2", seconds=120
            )
            shards.append(json.loads(done.stdout))
            errors.append(done.stderr)
            codes.append(done.returncode)
            last = project.runops("run", "flows", "--rows", "rows.csv", "--last-failed", "--list", "--json")
            left.append(json.loads(last.stdout))
        orders = Counter(request.query["name"] for request in site.arrived("/order"))
    return Forty(project, kinds, shards, errors, codes, orders, left)


def check_each_case_ends_once_as_planted(forty: Forty) -> None:
    """Every case is in exactly one shard and ends as it must; with a retry a flaky one passes, a killed worker loses nothing."""
    for shard in forty.shards:
        reports.check("batch-ending", shard)
        assert shard["selected"] == [*forty.shards[0]["selected"]]
    ran = [run["case"] for shard in forty.shards for run in shard["runs"]]
    assert sorted(ran) == sorted(forty.kinds) == sorted(forty.shards[0]["selected"])
    assert len(ran) == 40
    assert {case: run["status"] for case, run in forty.runs.items()} == {
        case: STATES.get(kind, kind) for case, kind in forty.kinds.items()
    }
    assert {case: len(run["attempts"]) for case, run in forty.runs.items()} == {
        case: RUNS.get(kind, 1) for case, kind in forty.kinds.items()
    }


def check_exit_codes_are_the_worst_of_each_shard(forty: Forty) -> None:
    assert forty.codes == [1, 1]
    assert [shard["exit"] for shard in forty.shards] == [1, 1]
    exits = {"passed": 0, "flaky": 0, "failed": 1, "paused": 4}
    assert all(run["exit"] == exits[run["status"]] for run in forty.runs.values())


def check_nothing_is_done_twice_and_nothing_lost(forty: Forty) -> None:
    """Each run has asked the site for its order once: a killed one, too, which did not begin again. Each log has its end."""
    wanted = Counter[str]()
    for case, kind in forty.kinds.items():
        name = Path(case.partition("[")[0]).stem
        row = case.partition("[")[2].rstrip("]") or name
        wanted[f"{name}-{row}"] = RUNS.get(kind, 1)
    assert forty.orders == wanted
    for number, shard in enumerate(forty.shards, start=1):
        forty.project.environment["RUNOPS_HOME"] = str(forty.project.folder / f"home{number}")
        kept = {run["id"]: run["state"] for run in forty.project.runs()}
        assert kept == {each["run"]: each["status"] for run in shard["runs"] for each in run["attempts"]}
        assert json.loads(forty.project.here("ps", "--json").stdout)["alive"] == []


def check_cases_say_what_became_of_them(forty: Forty) -> None:
    """The loss of a worker, a forbidden retry and each retry are said, and a flaky case shows what differed."""
    said = "".join(forty.errors)
    for case, kind in forty.kinds.items():
        run = forty.runs[case]
        notes = {
            "killed": ["its process died, and the run was resumed in another one"],
            "never": ["not retried: its file says `rerun: never`"],
        }
        assert run["notes"] == notes.get(kind, [])
        assert bool(run["differed"]) == (kind == "flaky")
        assert (f"-- retry 1/1 of {case} (run {run['attempts'][0]['run']} failed at " in said) == (kind in RUNS)
    assert said.count("its process died") == 2 * NUMBERS["killed"]  # where it ended, and in the summary


def check_what_is_left_is_what_did_not_pass(forty: Forty) -> None:
    """`--last-failed` selects the failed and paused cases in the home of their shard, no flaky one, and what never ran there."""
    for left, shard in zip(forty.left, forty.shards, strict=True):
        new = {each["case"] for each in left["cases"] if each["last"] is None}
        assert new == {*forty.kinds} - {run["case"] for run in shard["runs"]}
    listed = [each["case"] for left in forty.left for each in left["cases"] if each["last"] is not None]
    assert sorted(listed) == sorted(case for case, kind in forty.kinds.items() if kind in ("failed", "never", "paused"))


def joined_report(forty: Forty) -> dict[str, Any]:
    """The report of both shards."""
    done = forty.project.here("report", "merge", "2.report", "1.report", "--report", "all.json", "--junit", "all.xml")
    found = json.loads((forty.project.folder / "all.json").read_text())
    reports.check("batch-report", found)
    assert done.returncode == found["exit"] == 1
    return found


def check_the_joined_report_has_every_case_and_run(forty: Forty, joined: dict[str, Any]) -> None:
    """`report merge` gives all cases in the order of the selection, as each shard reported them, with the steps of every run; without one shard it names what is lost."""
    assert [run["case"] for run in joined["runs"]] == joined["selected"] == forty.shards[0]["selected"]
    assert {run["case"]: run for run in joined["runs"]} == forty.runs
    assert {*joined["details"]} == {each["run"] for run in joined["runs"] for each in run["attempts"]}
    lost = forty.project.here("report", "merge", "1.report")
    assert (lost.returncode, "shards-incomplete" in lost.stderr) == (2, True)
    assert all(run["case"] in lost.stderr for run in forty.shards[1]["runs"])


def check_a_junit_reader_finds_every_outcome(forty: Forty, joined: dict[str, Any]) -> None:
    """The joined JUnit report follows its schema, and its reader finds each case as it ended, with flaky and repeated runs, and which were resumed."""
    data = checked((forty.project.folder / "all.xml").read_bytes())
    found: dict[str, Any] = {}
    read: Any = xunit2.JUnitXml.fromstring(data)
    for suite in read:
        for case in suite:
            row = case.name.partition(" [")[2]
            found[f"{suite.name}[{row}" if row else suite.name] = case
    kinds = {
        case: Counter(type(each).__name__ for each in (*one.result, *one.interim_result)) for case, one in found.items()
    }
    assert kinds == {case: Counter(JUNIT[kind]) for case, kind in forty.kinds.items()}
    facts = {case: {each.name: each.value for each in one.properties()} for case, one in found.items()}
    assert {case: each["runops.run"] for case, each in facts.items()} == {
        each["case"]: each["run"] for each in joined["runs"]
    }
    resumed = {case for case, each in facts.items() if "runops.resumed" in each}
    assert resumed == {case for case, kind in forty.kinds.items() if kind == "killed"}


JUNIT = {
    "passed": [],
    "failed": ["Failure", "RerunFailure"],
    "never": ["Failure"],
    "flaky": ["FlakyFailure"],
    "paused": ["Error"],
    "killed": [],
}
"""The results that a JUnit reader finds of a case, by kind."""


def check_github_is_told_what_did_not_pass(forty: Forty) -> None:
    """Each shard annotates its failures as errors, its flaky and paused cases as warnings, in their files; its summary has a row for each case."""
    for number, (shard, said) in enumerate(zip(forty.shards, forty.errors, strict=True), start=1):
        lines = [line.split("::", 2)[1] for line in said.splitlines() if line.startswith("::")]
        told = sorted((line.partition(" ")[0], line.partition("file=")[2].partition(",")[0]) for line in lines)
        levels = {"failed": "error", "flaky": "warning", "paused": "warning"}
        assert told == sorted((levels[run["status"]], run["file"]) for run in shard["runs"] if run["status"] in levels)
        summary = (forty.project.folder / f"{number}.md").read_text()
        assert all(f"| `{run['case']}` |" in summary for run in shard["runs"])


def check_events_tell_every_case_once(forty: Forty) -> None:
    """The events of each shard tell each case from its begin to its outcome, and each run that began."""
    for number, shard in enumerate(forty.shards, start=1):
        lines = [json.loads(line) for line in (forty.project.folder / f"{number}.events").read_text().splitlines()]
        for each in lines:
            reports.check("batch-event", each)
        assert {each["case"]: each["outcome"] for each in lines if each["event"] == "case-ended"} == {
            run["case"]: run for run in shard["runs"]
        }
        counted = Counter(each["event"] for each in lines)
        assert counted["case-started"] == counted["case-ended"] == len(shard["runs"])
        began = {each["run"] for each in lines if each["event"] == "run-started"}
        assert began == {each["run"] for run in shard["runs"] for each in run["attempts"]}
        assert (lines[0]["event"], lines[-1]["event"], lines[-1]["exit"]) == ("started", "ended", 1)


def test_forty_cases_in_two_shards_of_four_workers(tmp_path: Path) -> None:
    """Run once, and looked at from all sides: whatever dies or fails, nothing is lost and nothing is done twice."""
    forty = run_forty(tmp_path)
    check_each_case_ends_once_as_planted(forty)
    check_exit_codes_are_the_worst_of_each_shard(forty)
    check_nothing_is_done_twice_and_nothing_lost(forty)
    check_cases_say_what_became_of_them(forty)
    check_what_is_left_is_what_did_not_pass(forty)
    joined = joined_report(forty)
    check_the_joined_report_has_every_case_and_run(forty, joined)
    check_a_junit_reader_finds_every_outcome(forty, joined)
    check_github_is_told_what_did_not_pass(forty)
    check_events_tell_every_case_once(forty)
