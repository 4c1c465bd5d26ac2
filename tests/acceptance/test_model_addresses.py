"""The command with an unusable address or key of a model server: refused in a sentence before a run begins, and never shown."""

from pathlib import Path

import pytest

from tests.command import Project

ONE = """
version: 1
nodes:
  - {id: kind, type: cognition, instruction: Sort it., input: tea, output: string}
"""

KEY = "RUNOPS_MODEL_KEY"
REFUSED = {
    "password in the setting": ({"RUNOPS_MODEL_BASE_URL": "http://user:hunter2@127.0.0.1:9/v1?key=hunter2"}, 2),
    "password in the other variable": ({"OPENAI_BASE_URL": "http://user:hunter2@127.0.0.1:9/v1"}, 2),
    "no address in the other variable": ({"OPENAI_BASE_URL": "hunter2"}, 2),
    "half an address": ({"RUNOPS_MODEL_BASE_URL": "http://[::1/hunter2"}, 2),
    "a key of two lines": ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", KEY: "hunter2\n1"}, 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unusable_address_or_key_is_refused_before_the_run(name: str, tmp_path: Path) -> None:
    """The command exits 2 or 3 with one error and its fix. No run begins, and the value appears neither in the output nor in a file."""
    variables, code = REFUSED[name]
    project = Project(tmp_path)
    project.environment |= {"RUNOPS_MODEL": "test-model", KEY: "key-of-nobody-0123456789", **variables}
    project.write("one.yaml", ONE)
    done = project.here("run", "one.yaml")
    assert done.returncode == code, done.stderr
    assert "error[bug]" not in done.stderr
    assert ("bad-setting" if code == 2 else "model-key-refused") in done.stderr
    assert "  = " in done.stderr
    assert not (project.folder / ".runops").exists(), "the first run makes it"
    doctor = project.here("doctor")
    assert doctor.returncode == 3
    assert "wrong" in doctor.stdout
    kept = [each.read_bytes().decode(errors="replace") for each in project.folder.rglob("*") if each.is_file()]
    assert not any("hunter2" in text for text in (done.stdout, done.stderr, doctor.stdout, doctor.stderr, *kept))
