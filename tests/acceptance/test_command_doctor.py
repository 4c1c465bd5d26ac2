"""`runops doctor` as a process: what it says of a machine, and of a models' server, by what that really does."""

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
"""Servers that take a field and do nothing with it."""
NO_SCHEMAS = dataclasses.replace(responses.OPENAI, schemas="none")
LOOSE_SCHEMAS = dataclasses.replace(responses.OPENAI, schemas="any")

CAN = {"streaming": "yes", "schemas": "strict", "chaining": "yes", "background": "yes"}


def obliging(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """A model that remembers what it is sent, and keeps to a schema."""
    told = "\n".join(scripted_model.text_of(item) for item in asked.items)
    word = re.search(r"Remember this word: (\w+)", told)
    if "Which word" in asked.newest:
        return scripted_model.text(word[1] if word else "none")
    if asked.body.get("text"):
        return scripted_model.text({"colour": "green"})
    return scripted_model.text("one two three four five six seven eight nine ten")


def stubborn(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """The same, but it does what the user says, whatever schema it is given."""
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
    """What `runops doctor --json` says, and its checks by name."""
    done = project.here("doctor", *arguments, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["version"], told["exit"], told["fit"]) == (1, code, code == 0)
    return told, {each["name"]: each for each in told["checks"]}


def test_a_machine_that_is_fit(tmp_path: Path) -> None:
    """Exit 0 and one line a check on stdout; nothing is left behind, no model is needed, and no server is asked."""
    project = Project(tmp_path, RUNOPS_MODEL_BASE_URL="http://127.0.0.1:9/v1")
    done = project.here("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^ok     browser     \S+ starts in [\d.]+ s$", done.stdout, re.MULTILINE)
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok")]
    assert names == ["browser", "playwright", "home", "room", "settings", "models"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_told_with_its_fix(tmp_path: Path) -> None:
    """Exit 3: a browser that is none, a folder that cannot be one, a model without a key; a variable that looks like a setting is noted."""
    project = Project(
        tmp_path,
        RUNOPS_BROWSER="/nowhere/chrome",
        RUNOPS_HOME=str(tmp_path / "file" / "runs"),
        RUNOPS_MODEL="some-model",
        RUNOPS_MODLE_AGENT="other",
    )
    project.write("file", "no folder")
    told, checks = checks_of(project, code=3)
    assert {name for name, each in checks.items() if each["state"] == "wrong"} == {"browser", "home", "server"}
    assert all(each["fix"] for each in checks.values() if each["state"] == "wrong")
    assert "RUNOPS_MODEL_KEY" in checks["server"]["fix"]
    assert checks["settings"]["fix"] == "did you mean RUNOPS_MODEL_AGENT?"
    assert told["server"] is None


def test_a_setting_that_cannot_be_used_is_one_of_the_checks(tmp_path: Path) -> None:
    """It is named with its place, the others are looked at all the same, and no server is asked with settings that nobody meant."""
    project = Project(tmp_path, RUNOPS_LINGER="long")
    told, checks = checks_of(project, "--model", code=3)
    assert checks["settings"]["state"] == "wrong"
    assert "RUNOPS_LINGER" in checks["settings"]["text"]
    assert checks["browser"]["state"] == "ok"
    assert told["server"] is None


def test_a_server_that_can_do_all_fits_its_profile(tmp_path: Path) -> None:
    """Exit 0; seven requests, told with what they cost; each small and none with the key in what is printed; nothing that breaks the protocol."""
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


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    ("profile", "script", "lacks", "fits"),
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
def test_what_a_server_lacks_is_found_by_what_it_does(
    profile: responses.Profile, script: scripted_model.Script, lacks: dict[str, str], fits: str, tmp_path: Path
) -> None:
    """Exit 3 under a profile that says it could, with the one that fits; what the server does well is not called in doubt."""
    with responses.serve(script, profile=profile) as server:
        told, checks = checks_of(project_of(tmp_path, server), "--model", code=3)
        assert {name: each["level"] for name, each in told["server"]["found"].items()} == {**CAN, **lacks}
        assert {name for name, each in checks.items() if each["state"] == "wrong"} == {*lacks}
        assert told["server"]["fits"] == fits
        assert all(f'`model_profile = "{fits}"`' in checks[name]["fix"] for name in lacks)


def test_under_the_profile_that_fits_all_is_well(tmp_path: Path) -> None:
    """What a server lacks is no fault where its profile does not say that it could."""
    with responses.serve(stubborn, profile=responses.IGNORING) as server:
        told, checks = checks_of(project_of(tmp_path, server, "ollama"), "--model")
    assert told["server"]["fits"] == told["server"]["profile"] == "ollama"
    assert {each["state"] for each in checks.values()} == {"ok"}


def test_what_a_profile_does_not_use_is_a_hint(tmp_path: Path) -> None:
    """A server that can more than `compatible` says: exit 0, and the profile that would use it."""
    with responses.serve(obliging) as server:
        told, checks = checks_of(project_of(tmp_path, server, "compatible"), "--model")
    assert {name for name, each in checks.items() if each["state"] == "note"} == {*CAN}
    assert told["server"]["fits"] == "openai"
    assert '`model_profile = "openai"`' in checks["chaining"]["fix"]


def test_a_model_that_the_server_lacks_names_the_nearest(tmp_path: Path) -> None:
    """Each model that is set is asked; of one that does not answer nothing more is found out."""
    with responses.serve(obliging, models=("test-model-2", "far")) as server:
        told, checks = checks_of(project_of(tmp_path, server), "--model", code=3)
    assert checks["answer"]["text"].startswith("test-model: the server does not know the model")
    assert checks["answer"]["fix"] == "did you mean `test-model-2`?"
    assert told["server"]["found"] == {}
    assert told["server"]["listed"] == ["far", "test-model-2"]


def test_a_failure_that_passes_is_no_finding(tmp_path: Path) -> None:
    """A request that may go right another time is sent again; what stays unknown is said to be unknown, and not to be missing."""
    count = 0

    def shaky(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        nonlocal count
        count += 1
        if count == 2 or asked.body.get("text"):
            return scripted_model.rate_limited(retry_after=0)
        return obliging(asked)

    with responses.serve(shaky) as server:
        told, checks = checks_of(project_of(tmp_path, server), "--model", code=3)
    assert {name: each["level"] for name, each in told["server"]["found"].items()} == {**CAN, "schemas": None}
    assert {name for name, each in checks.items() if each["state"] == "wrong"} == {"schemas"}
    assert checks["schemas"]["fix"] == "ask again: `runops doctor --model`"


def test_a_server_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    """No traceback: its address, and what to look at."""
    with socket.socket() as taken:
        # Nobody listens there, and nobody else gets the port meanwhile.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        project = Project(tmp_path, RUNOPS_MODEL="test-model", RUNOPS_MODEL_BASE_URL=url)
        done = project.here("doctor", "--model")
    assert done.returncode == 3
    assert f"{url} does not answer" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_model_that_is_about_to_end_is_told(tmp_path: Path) -> None:
    """Where the server says when it shuts down the model that is set, the doctor says so; that alone makes nothing unfit."""
    with responses.serve(obliging, models=("test-model", "other"), ending={"test-model": "2026-12-11"}) as server:
        told, checks = checks_of(project_of(tmp_path, server), "--model")
    assert "2026-12-11" in checks["end"]["text"]
    assert told["server"]["shut_down"] == {"test-model": "2026-12-11"}
