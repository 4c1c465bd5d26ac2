"""`runops doctor` as a process: its report on the machine and on a model server agrees with how they behave."""

import dataclasses
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from runtime.testing import responses, scripted_model
from tests.command import Project

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver]

WITHOUT = {
    name: dataclasses.replace(responses.OPENAI, fields=responses.FIELDS - {name}, unknown="ignore")
    for name in ("previous_response_id", "store", "background", "stream")
}
"""Profiles of servers that accept a field and ignore it."""
NO_SCHEMAS = dataclasses.replace(responses.OPENAI, schemas="none")
LOOSE_SCHEMAS = dataclasses.replace(responses.OPENAI, schemas="any")

CAN = {"streaming": "yes", "schemas": "strict", "chaining": "yes", "background": "yes"}


def obliging(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """A model that remembers what it is sent and follows a schema."""
    output = "\n".join(scripted_model.text_of(item) for item in asked.items)
    word = re.search(r"Remember this word: (\w+)", output)
    if "Which word" in asked.newest:
        return scripted_model.text(word[1] if word else "none")
    if asked.body.get("text"):
        return scripted_model.text({"colour": "green"})
    return scripted_model.text("one two three four five six seven eight nine ten")


def stubborn(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """The same model, except that it follows the user and ignores the schema."""
    return scripted_model.text("BLUE") if asked.body.get("text") else obliging(asked)


def project_of(folder: Path, server: responses.Server, profile: str = "openai", **more: str) -> Project:
    return Project(
        folder,
        RUNOPS_MODEL="test-model",
        RUNOPS_MODEL_BASE_URL=server.url,
        RUNOPS_MODEL_KEY=server.key,
        RUNOPS_MODEL_PROFILE=profile,
        **more,
    )


def checks_of(project: Project, *arguments: str, code: int = 0) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The report of `runops doctor --json`, and its checks by name."""
    done = project.here("doctor", *arguments, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["version"], report["exit"], report["fit"]) == (1, code, code == 0)
    return report, {each["name"]: each for each in report["checks"]}


def test_a_machine_that_is_fit(tmp_path: Path) -> None:
    """The command exits 0 and prints one line per check. It leaves no file, needs no model and contacts no server."""
    project = Project(tmp_path, RUNOPS_MODEL_BASE_URL="http://127.0.0.1:9/v1")
    done = project.here("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^ok     browser     \S+ starts in [\d.]+ s$", done.stdout, re.MULTILINE)
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok")]
    machine = ["browser", "playwright", "home", "room", "memory", "clock", "fonts"]
    assert names == [*machine, "settings", "models", "extras", "encoding"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_reported_with_its_fix(tmp_path: Path) -> None:
    """A bad browser path, an unusable home and a model without a key each exit 3 with a fix. A misspelt variable yields a suggestion."""
    project = Project(
        tmp_path,
        RUNOPS_BROWSER="/nowhere/chrome",
        RUNOPS_HOME=str(tmp_path / "file" / "runs"),
        RUNOPS_MODEL="some-model",
        RUNOPS_MODLE_AGENT="other",
    )
    project.write("file", "no folder")
    report, checks = checks_of(project, code=3)
    assert {name for name, each in checks.items() if each["state"] == "wrong"} == {
        "browser",
        "home",
        "server",
        "settings",
    }
    assert all(each["fix"] for each in checks.values() if each["state"] == "wrong")
    assert "RUNOPS_MODEL_KEY" in checks["server"]["fix"]
    assert checks["settings"]["fix"] == "did you mean RUNOPS_MODEL_AGENT?"
    assert report["server"] is None


def test_a_setting_that_cannot_be_used_is_one_of_the_checks(tmp_path: Path) -> None:
    """An invalid setting is reported by name, the other checks still run, and no server is contacted."""
    project = Project(tmp_path, RUNOPS_LINGER="long")
    report, checks = checks_of(project, "--model", code=3)
    assert checks["settings"]["state"] == "wrong"
    assert "RUNOPS_LINGER" in checks["settings"]["text"]
    assert checks["browser"]["state"] == "ok"
    assert report["server"] is None


def test_a_server_that_can_do_all_fits_its_profile(tmp_path: Path) -> None:
    """A capable server exits 0. The report costs seven small requests, states their price and never prints the key."""
    with responses.serve(obliging, strict=True, models=("test-model", "other")) as server:
        project = project_of(tmp_path, server, RUNOPS_PRICES='{"test-model": {"input": 1, "output": 2}}')
        done = project.here("doctor", "--model")
        assert done.returncode == 0, done.stdout
        said = {line.split()[1]: line for line in done.stdout.splitlines()}
        assert said["list"].endswith("the server has other, test-model")
        for name, level in CAN.items():
            assert re.fullmatch(rf"ok     {name} +{level}: .*", said[name])
        assert re.search(r"7 requests  [\d,]+ tokens in  \d+ out  \$0\.\d+ at least$", said["cost"])
        assert server.key not in done.stdout + done.stderr
        assert [each.body["max_output_tokens"] <= 512 for each in server.asked] == [True] * 7
        assert [each.body["store"] for each in server.asked] == [False] * 3 + [True] * 4


@pytest.mark.drawn(share=0.15)
@pytest.mark.parametrize(
    ("profile", "script", "missing", "fits"),
    [
        (WITHOUT["previous_response_id"], obliging, {"chaining": "no"}, "vllm"),
        (WITHOUT["store"], obliging, {"chaining": "no", "background": "no"}, "vllm"),
        (WITHOUT["background"], obliging, {"background": "no"}, "vllm"),
        (WITHOUT["stream"], obliging, {"streaming": "no"}, "compatible"),
        (NO_SCHEMAS, obliging, {"schemas": "none"}, "compatible"),
        (LOOSE_SCHEMAS, stubborn, {"schemas": "plain"}, "ollama"),
        (responses.IGNORING, stubborn, {"schemas": "plain", "chaining": "no", "background": "no"}, "ollama"),
    ],
    ids=["ignores-chains", "keeps-nothing", "no-background", "no-stream", "no-schemas", "loose-schemas", "ignores-all"],
)
def test_missing_capabilities_of_a_server_are_found_by_its_behaviour(
    profile: responses.Profile, script: scripted_model.Script, missing: dict[str, str], fits: str, tmp_path: Path
) -> None:
    """A server that lacks what its profile promises exits 3 with the fitting profile. Its other capabilities are not questioned."""
    with responses.serve(script, profile=profile) as server:
        report, checks = checks_of(project_of(tmp_path, server), "--model", code=3)
        assert {name: each["level"] for name, each in report["server"]["found"].items()} == {**CAN, **missing}
        assert {name for name, each in checks.items() if each["state"] == "wrong"} == {*missing}
        assert report["server"]["fits"] == fits
        assert all(f'`model_profile = "{fits}"`' in checks[name]["fix"] for name in missing)


def test_under_the_profile_that_fits_every_check_passes(tmp_path: Path) -> None:
    """A missing capability is no problem where the profile does not promise it."""
    with responses.serve(stubborn, profile=responses.IGNORING) as server:
        report, checks = checks_of(project_of(tmp_path, server, "ollama"), "--model")
    assert report["server"]["fits"] == report["server"]["profile"] == "ollama"
    assert {each["state"] for each in checks.values()} == {"ok"}


def test_what_a_profile_does_not_use_is_a_hint(tmp_path: Path) -> None:
    """A server that offers more than `compatible` promises exits 0, with a hint that names the better profile."""
    with responses.serve(obliging) as server:
        report, checks = checks_of(project_of(tmp_path, server, "compatible"), "--model")
    assert {name for name, each in checks.items() if each["state"] == "note"} == {*CAN}
    assert report["server"]["fits"] == "openai"
    assert '`model_profile = "openai"`' in checks["chaining"]["fix"]


def test_an_unknown_model_names_the_nearest(tmp_path: Path) -> None:
    """Every configured model is queried. One that does not answer is not tested further."""
    with responses.serve(obliging, models=("test-model-2", "far")) as server:
        report, checks = checks_of(project_of(tmp_path, server), "--model", code=3)
    assert checks["answer"]["text"].startswith("test-model: the server does not know the model")
    assert checks["answer"]["fix"] == "did you mean `test-model-2`?"
    assert report["server"]["found"] == {}
    assert report["server"]["listed"] == ["far", "test-model-2"]


def test_a_transient_failure_is_no_finding(tmp_path: Path) -> None:
    """A transient failure is retried. What remains unknown is reported as unknown, not as missing."""
    count = 0

    def shaky(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        nonlocal count
        count += 1
        if count == 2 or asked.body.get("text"):
            return scripted_model.rate_limited(retry_after=0)
        return obliging(asked)

    with responses.serve(shaky) as server:
        report, checks = checks_of(project_of(tmp_path, server), "--model", code=3)
    assert {name: each["level"] for name, each in report["server"]["found"].items()} == {**CAN, "schemas": None}
    assert {name for name, each in checks.items() if each["state"] == "wrong"} == {"schemas"}
    assert checks["schemas"]["fix"] == "ask again: `runops doctor --model`"


def test_an_unreachable_server_is_reported_once(tmp_path: Path) -> None:
    """An unreachable server is reported with its address and a fix, without a traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        project = Project(tmp_path, RUNOPS_MODEL="test-model", RUNOPS_MODEL_BASE_URL=url)
        done = project.here("doctor", "--model")
    assert done.returncode == 3
    assert f"{url} does not answer" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_model_that_is_about_to_shut_down_is_reported(tmp_path: Path) -> None:
    """A shutdown date that the server announces for the configured model is reported, and alone fails no check."""
    with responses.serve(obliging, models=("test-model", "other"), ending={"test-model": "2026-12-11"}) as server:
        report, checks = checks_of(project_of(tmp_path, server), "--model")
    assert "2026-12-11" in checks["end"]["text"]
    assert report["server"]["shut_down"] == {"test-model": "2026-12-11"}
