"""`runops run` with files and folders, as in a CI job: checks first, runs in turn, summary and report."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml
from junitparser import xunit2

from tests import counted, reports
from tests.command import Project
from tests.site import Answer, Request, serve

ADD = """\
version: 1
name: Add
inputs: {n: {type: integer, default: 1}}
nodes: [{id: sum, type: transform, expr: "{{ inputs.n + 1 }}"}]
output: "{{ sum }}"
"""
GREET = """\
version: 1
inputs: {who: {type: string, default: you}}
nodes: [{id: hello, type: transform, expr: "hello {{ inputs.who }}"}]
output: {said: "{{ hello }}"}
"""
BREAK = """\
version: 1
nodes:
  - {id: divide, type: transform, expr: "{{ 1 // 0 }}"}
"""
WRONG = """\
version: 1
nodes:
  - {id: a, type: transfrom, expr: 1}
"""
SECRET = "version: 1\nsecrets: [NOT_THERE]\nnodes: [{id: a, type: transform, expr: 1}]\n"
OPEN = """\
version: 1
inputs: {site: {type: string}}
nodes: [{id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/slow"}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a folder of four workflows, the third of which fails."""
    (tmp_path / "flows" / "more").mkdir(parents=True)
    project = Project(tmp_path)
    project.write("flows/add.yaml", ADD)
    project.write("flows/greet.yaml", GREET)
    project.write("flows/more/break.yaml", BREAK)
    project.write("flows/zero.yml", ADD.replace("Add", "Zero"))
    project.write("flows/notes.yaml", "todo: nothing\n")
    return project


def states(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    """File and status of each run in the output of ``--json``."""
    return [(run["file"], run["status"]) for run in json.loads(done.stdout)["runs"]]


def test_a_folder_runs_in_order_with_a_summary(project: Project) -> None:
    """Each file is its own run, and stdout maps files to outputs. The summary names each run and the next command; the worst exit code wins."""
    done = project.here("run", "flows", "-i", "n=4", "--input", "who=@@me")
    assert done.returncode == 1
    assert yaml.safe_load(done.stdout) == {
        "flows/add.yaml": 5,
        "flows/greet.yaml": {"said": "hello @me"},
        "flows/zero.yml": 5,
    }
    ran = project.runs()
    assert [(run["workflow"], run["state"]) for run in ran] == [
        ("Add", "passed"),
        ("greet", "passed"),
        ("break", "failed"),
        ("Zero", "passed"),
    ]
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("-- ")][2] == "-- 3/4  flows/more/break.yaml"
    summary = lines[[line.startswith("3 passed, 1 failed") for line in lines].index(True) :]
    assert all(run["id"] in line for run, line in zip(ran, summary[1:], strict=False))
    assert summary[-1] == f"  again  runops resume {ran[2]['id']}"
    assert len(summary) == 7


def test_json_is_one_object_for_many(project: Project) -> None:
    """`--json` prints one object with every run. `--fail-fast` reports the rest as skipped, and `--quiet` prints only failures."""
    done = project.here("run", "flows/zero.yml", "flows/more", "flows/add.yaml", "--json", "-x", "--quiet")
    report = json.loads(done.stdout)
    assert (done.returncode, report["version"], report["exit"]) == (1, 1, 1)
    assert states(done) == [
        ("flows/zero.yml", "passed"),
        ("flows/more/break.yaml", "failed"),
        ("flows/add.yaml", "skipped"),
    ]
    passed, failed, left = report["runs"]
    assert passed.keys() == failed.keys() == left.keys()
    assert (passed["output"], failed["path"], failed["error"]["code"], left["exit"]) == (
        2, "divide", "expression-failed", None,
    )  # fmt: skip
    assert len(project.runs()) == 2
    assert "1 passed, 1 failed, 1 skipped" in done.stderr
    assert project.here("run", "flows/add.yaml", "flows/zero.yml", "--quiet").stderr == ""


def test_everything_is_checked_before_the_first_run(project: Project) -> None:
    """Invalid files, unfit inputs, missing secrets and missing files are all reported at once. Nothing runs, and the worst exit code wins."""
    project.write("flows/bad.yaml", WRONG)
    project.write("flows/secret.yaml", SECRET)
    project.write("flows/uses.yaml", "version: 1\nnodes: [{id: part, type: group, use: bad.yaml}]\n")
    done = project.here("run", "flows", "flows/zer.yml", "-i", "n=some", "--json", "--junit", "report/all.xml")
    assert done.returncode == 3
    assert dict(states(done)) == {
        "flows/add.yaml": "error",
        "flows/bad.yaml": "error",
        "flows/greet.yaml": "skipped",
        "flows/more/break.yaml": "skipped",
        "flows/secret.yaml": "error",
        "flows/uses.yaml": "error",
        "flows/zero.yml": "error",
        "flows/zer.yml": "error",
    }
    for said in (
        "error[input-type]: flows/add.yaml:",
        "--> flows/bad.yaml:3:19",
        "error[secret-missing]: flows/secret.yaml:",
        "did you mean flows/zero.yml?",
        "6 of 8 files cannot be run, so none was begun",
    ):
        assert done.stderr.count(said) == 1
    assert not (project.folder / ".runops").exists()
    report = junitparser.JUnitXml.fromfile(str(project.folder / "report/all.xml"))
    assert (report.tests, report.errors, report.skipped) == (8, 6, 2)
    assert project.here("run", "flows/add.yaml", "flows/bad.yaml").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["empty"], "nothing-to-run", "run: manual"),
        (["flows", "-i", "nn=1"], "unknown-input", "did you mean `n`?"),
        (["flows/add.yaml", "--inputs", "in.yaml"], "unknown-input", "in.yaml:2:1"),
        (["flows", "--inputs", "none.yaml"], "file-not-found", "did you mean in.yaml?"),
        (["flows", "-i", "n=@torn.json"], "input-file-invalid", "torn.json:1:2"),
        (["flows", "--junit", "in.yaml/report.xml"], "report-not-written", "--junit"),
        (["flows", "--junit", "flows"], "report-not-written", "--junit"),
        (["flows", "--html", "flows"], "report-not-written", "--html"),
        (["flows", "--report", "in.yaml/r.json"], "report-not-written", "--report"),
        (["flows", "--events", "flows"], "report-not-written", "--events"),
    ],
)
def test_unusable_arguments_end_before_the_first_run(
    project: Project, arguments: list[str], code: str, said: str
) -> None:
    """Unusable arguments exit 2 with a code and a place or fix, without a traceback or a run. `--json` still prints JSON."""
    (project.folder / "empty").mkdir()
    project.write("in.yaml", "n: 1\nm: 2\n")
    project.write("torn.json", "{")
    done = project.here("run", *arguments, "--json")
    assert done.returncode == 2
    assert f"error[{code}]" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["exit"] == 2
    assert not (project.folder / ".runops").exists()


def test_inputs_come_from_files(project: Project) -> None:
    """Inputs come from a file of many, or one value from a file parsed by its suffix. A flag wins."""
    project.write("in.json", '{"n": 10, "who": "file"}')
    project.write("who.txt", "text")
    done = project.here("run", "flows/add.yaml", "flows/greet.yaml", "--inputs", "in.json", "-i", "who=@who.txt")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout) == {"flows/add.yaml": 11, "flows/greet.yaml": {"said": "hello text"}}


def test_the_report_agrees_with_the_runs(project: Project) -> None:
    """The report has a suite per file, the failure with its code, step and place, and the run ids."""
    project.write("flows/add.yaml", ADD.replace("inputs.n + 1", "inputs.n + 1 }}\\u0001{{ '' "))
    done = project.here("run", "flows", "--junit", "out/report.xml")
    assert done.returncode == 1
    report = xunit2.JUnitXml.fromfile(str(project.folder / "out" / "report.xml"))
    assert [suite.name for suite in report] == [
        "flows/add.yaml",
        "flows/greet.yaml",
        "flows/more/break.yaml",
        "flows/zero.yml",
    ]
    tests: list[Any] = [case for suite in report for case in suite]
    ids = [{each.name: each.value for each in case.properties()}["runops.run"] for case in tests]
    assert ids == [run["id"] for run in project.runs()]
    (failed,) = [case for suite in report for case in suite if case.result]
    (failure,) = failed.result
    assert (failed.name, failure.type) == ("break", "expression-failed")
    assert "flows/more/break.yaml:3:5" in str(failure.text)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_ends_the_current_run_and_starts_no_other(project: Project, number: int, code: int) -> None:
    """The interrupted run can be resumed, and later files are reported as skipped, also in the JUnit report."""
    project.write("open.yaml", OPEN)
    with serve() as site:
        reached: list[Request] = []

        def slow(request: Request) -> Answer:
            reached.append(request)
            process.send_signal(number)
            return Answer(drop=True)

        site.answer("/slow", slow)
        files = ["flows/add.yaml", "open.yaml", "flows/greet.yaml", "flows/zero.yml"]
        arguments = ["run", *files, "-i", f"site={site.origin}", "--json", "--junit", "r.xml"]
        with project.start(*arguments) as process:
            out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert reached
    result = json.loads(out)
    assert [run["status"] for run in result["runs"]] == ["passed", "interrupted", "skipped", "skipped"]
    assert (result["exit"], result["runs"][1]["exit"]) == (code, code)
    assert "1 passed, 1 interrupted, 2 skipped" in err
    assert err.splitlines()[-1] == f"  again  runops resume {result['runs'][1]['run']}"
    assert "Traceback" not in err
    assert [run["state"] for run in project.runs()] == ["passed", "interrupted"]
    report = junitparser.JUnitXml.fromfile(str(project.folder / "r.xml"))
    kinds = [[type(result).__name__ for result in case.result] for suite in report for case in suite]
    assert kinds == [[], ["Error"], ["Skipped"], ["Skipped"]]


def test_a_killed_process_leaves_a_report_that_says_so(project: Project) -> None:
    """After a kill each report is whole, and marks the current run as one without an end and later ones as skipped, never as passed."""
    project.write("open.yaml", OPEN)
    project.environment["RUNOPS_LINGER"] = "0"
    with serve() as site:

        def kill(_request: Request) -> Answer:
            process.kill()
            return Answer(drop=True)

        site.answer("/slow", kill)
        arguments = ["run", "flows/add.yaml", "open.yaml", "flows/zero.yml", "-i", f"site={site.origin}"]
        reported = ("--junit", "r.xml", "--report", "r.json", "--html", "r.html", "--events", "e.jsonl")
        with project.start(*arguments, *reported) as process:
            process.communicate(timeout=60)
    report = junitparser.JUnitXml.fromfile(str(project.folder / "r.xml"))
    kinds = [[(type(result).__name__, result.type) for result in case.result] for suite in report for case in suite]
    assert kinds == [[], [("Error", "no-end")], [("Skipped", None)]]
    whole = json.loads((project.folder / "r.json").read_text())
    reports.check("batch-report", whole)
    assert [each["status"] for each in whole["runs"]] == ["passed", "begun", "skipped"]
    assert [*whole["details"]] == [whole["runs"][0]["run"]]
    assert (project.folder / "r.html").read_text().rstrip().endswith("</html>")
    told = [json.loads(line)["event"] for line in (project.folder / "e.jsonl").read_text().splitlines()]
    assert (told.count("case-started"), told.count("case-ended"), told.count("ended")) == (2, 1, 0)
    joined = project.here("report", "merge", "r.json")
    assert (joined.returncode, joined.stderr.splitlines()[0][:29]) == (130, "RunOps: 1 passed, 1 no end, 1")


def test_files_of_one_command_share_one_browser(tmp_path: Path) -> None:
    """Six files start one Chromium and one driver, and no run sees another's state. A file that asks for its own browser gets one."""
    browser, driver = counted.browser(tmp_path), counted.driver(tmp_path)
    project = Project(tmp_path, RUNOPS_BROWSER=str(browser.script), PLAYWRIGHT_NODEJS_PATH=str(driver.script))
    with serve() as site:

        def page(request: Request) -> Answer:
            seen = request.headers.get("cookie", "none")
            return Answer(f"<title>{seen}</title>", headers={"set-cookie": "left=behind"})

        site.answer("/", page)
        for number in range(6):
            project.write(f"{number}.yaml", LOOK.format(site=site.origin, mode=""))
        done = project.here("run", *(f"{number}.yaml" for number in range(6)))
        assert (done.returncode, [*yaml.safe_load(done.stdout).values()]) == (0, ["none"] * 6)
        assert [len(each.processes) for each in (browser, driver)] == [1, 1]
        project.write("own.yaml", LOOK.format(site=site.origin, mode="browser: {mode: own}\n"))
        assert project.here("run", "own.yaml", "0.yaml", "1.yaml").returncode == 0
        assert len(browser.processes) == 3


LOOK = """\
version: 1
{mode}nodes:
  - {{id: open, type: browser_action, action: goto, url: "{site}/"}}
  - {{id: seen, type: browser_query, query: title}}
output: "{{{{ seen }}}}"
"""


def test_github_gets_annotations_and_a_summary(project: Project) -> None:
    """In GitHub Actions a refused file is annotated at its mistake, a failed one at its step, on stderr; stdout stays JSON, and the summary is written once."""
    project.environment |= {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(project.folder.parent)}
    project.environment["GITHUB_STEP_SUMMARY"] = str(project.folder / "summary.md")
    done = project.here("run", "flows", "--json")
    assert json.loads(done.stdout)["exit"] == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("::")]
    file = f"{project.folder.name}/flows/more/break.yaml"
    assert line.startswith(f"::error file={file},line=3,col=5,title=break%3A failed::divide: expression-failed: ")
    summary = (project.folder / "summary.md").read_text()
    assert summary.count("## RunOps: 3 passed, 1 failed") == 1
    assert f"runops resume {project.runs()[2]['id']}" in summary
    project.write("flows/bad.yaml", WRONG)
    refused = project.here("run", "flows", "--json")
    lines = [line for line in refused.stderr.splitlines() if line.startswith("::")]
    assert [line.split("::")[1].split(",title")[0] for line in lines] == [
        f"error file={project.folder.name}/flows/bad.yaml,line=3,col=19"
    ]
    assert "::" not in project.here("run", "flows", "--json", "--annotations", "off").stderr


def test_a_joined_report_is_summed_up_and_not_annotated_again(project: Project) -> None:
    """The shards have annotated their cases: `report merge` adds the summary, and annotations only if asked."""
    project.environment |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(project.folder / "summary.md")}
    shard = project.here("run", "flows", "--quiet", "--report", "one.json", "--annotations", "off")
    assert (shard.returncode, "::" in shard.stderr) == (1, False)
    joined = project.here("report", "merge", "one.json")
    assert (joined.returncode, "::error" in joined.stderr) == (1, False)
    assert "## RunOps: 3 passed, 1 failed" in (project.folder / "summary.md").read_text()
    assert "::error" in project.here("report", "merge", "one.json", "--annotations", "on").stderr


def test_the_whole_report_and_the_events_agree(project: Project) -> None:
    """`--report` has all that `--json` prints, and the steps of each run; `--events` tells the same cases, and `--html` names each."""
    done = project.here(
        *("run", "flows", "--json", "--report", "out/r.json", "--events", "out/e.jsonl", "--html", "out/h.html")
    )
    printed = json.loads(done.stdout)
    report = json.loads((project.folder / "out/r.json").read_text())
    reports.check("batch-report", report)
    assert {name: report[name] for name in printed} == printed
    assert [*report["details"]] == [run["run"] for run in printed["runs"]]
    failed = report["details"][printed["runs"][2]["run"]]
    assert (failed["state"], failed["steps"][0]["status"]) == ("failed", "error")
    assert failed["place"].endswith("flows/more/break.yaml:3:5")
    lines = [json.loads(line) for line in (project.folder / "out/e.jsonl").read_text().splitlines()]
    for each in lines:
        reports.check("batch-event", each)
    assert [each["outcome"] for each in lines if each["event"] == "case-ended"] == printed["runs"]
    assert lines[-1]["exit"] == 1
    page = (project.folder / "out/h.html").read_text()
    assert all(run["file"] in page for run in printed["runs"])


def test_what_a_run_did_differently_since_it_passed_is_reported(project: Project) -> None:
    """A case that did not pass is compared with its last run that passed, if it had one."""
    project.write("flows/add.yaml", ADD.replace("inputs.n + 1", "1 // 1"))
    assert project.here("run", "flows/add.yaml", "-q").returncode == 0
    project.write("flows/add.yaml", ADD.replace("inputs.n + 1", "1 // 0"))
    assert project.here("run", "flows/add.yaml", "-q", "--report", "r.json").returncode == 1
    (case,) = json.loads((project.folder / "r.json").read_text())["runs"]
    assert case["green"] == project.runs()[0]["id"]
    assert {"status", "error"} <= {each["what"] for each in case["since_green"]}


def test_joined_shards_are_the_whole_command(project: Project) -> None:
    """`report merge` of all shards gives the cases, runs and exit code of a command without shards, in every form; without one of them it exits with 2, and names what is lost."""
    for number in (1, 2, 3):
        project.here("run", "flows", "-q", "--shard", f"{number}/3", "--report", f"s{number}.json")
    project.here("run", "flows", "-q", "--report", "all.json")
    done = project.here(
        *("report", "merge", "s3.json", "s1.json", "s2.json", "--json"),
        *("--report", "m.json", "--junit", "m.xml", "--html", "m.html"),
    )
    joined, whole = (json.loads((project.folder / name).read_text()) for name in ("m.json", "all.json"))
    assert done.returncode == joined["exit"] == whole["exit"] == 1
    assert {name: joined[name] for name in json.loads(done.stdout)} == json.loads(done.stdout)
    for name in ("selected", "shard"):
        assert joined[name] == whole[name]
    facts = [
        [(each["case"], each["status"], each["output"], each["place"]) for each in of["runs"]] for of in (joined, whole)
    ]
    assert facts[0] == facts[1]
    assert [*sorted(joined["details"])] == [run["id"] for run in project.runs()[:4]]
    assert junitparser.JUnitXml.fromfile(str(project.folder / "m.xml")).tests == 4
    assert "flows/zero.yml" in (project.folder / "m.html").read_text()
    assert "3 passed, 1 failed" in done.stderr
    lost = project.here("report", "merge", "s1.json", "s2.json")
    assert (lost.returncode, "shards-incomplete" in lost.stderr) == (2, True)
    assert all(run["case"] in lost.stderr for run in json.loads((project.folder / "s3.json").read_text())["runs"])
    for words in (["join", "s1.json"], ["merge"], ["merge", "none.json"]):
        assert project.here("report", *words).returncode == 2
