"""Signed-in states: which ones can sign in, and how they are carried to another machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nodes.errors import SiteError
from nodes.values import Json
from runtime.browser import sign_in_states
from runtime.services.signed_in import SignIns
from tests.command import Project

NOW = 2_000_000_000.0
STORED: list[Json] = [{"origin": "https://shop.test", "localStorage": [{"name": "token", "value": "t-61520"}]}]


def cookie(name: str = "sid", *, expires: float = -1, hidden: bool = True) -> dict[str, Json]:
    return {
        "name": name,
        "value": "v-93118",
        "domain": "shop.test",
        "path": "/",
        "expires": expires,
        "httpOnly": hidden,
        "secure": True,
        "sameSite": "Lax",
    }


OVER, VALID = NOW - 1, NOW + 60


@pytest.mark.parametrize(
    ("cookies", "stored", "code"),
    [
        ([], [], "session-not-found"),
        ([cookie(expires=OVER)], [], "session-expired"),
        ([cookie(expires=OVER)], STORED, "session-expired"),
        ([cookie(expires=OVER), cookie("seen", expires=VALID, hidden=False)], [], "session-expired"),
        ([cookie(expires=OVER, hidden=False)], [], "session-expired"),
        ([cookie(expires=VALID)], [], None),
        ([cookie()], [], None),
        ([cookie(expires=OVER), cookie("remember", expires=VALID)], [], None),
        ([cookie(expires=OVER, hidden=False)], STORED, None),
        ([], STORED, None),
    ],
)
def test_a_state_that_cannot_sign_in(cookies: list[Json], stored: list[Json], code: str | None) -> None:
    """A state counts as expired if all its cookies that scripts cannot read are; without such, and without stored data, if all are."""
    state = {"cookies": cookies, "origins": stored}
    if code is None:
        sign_in_states.require_usable(state, NOW)
        return
    with pytest.raises(SiteError) as refused:
        sign_in_states.require_usable(state, NOW)
    assert refused.value.code == code
    assert "v-93118" not in str(refused.value.evidence)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "one").mkdir()
    return Project(tmp_path / "one")


def save(project: Project, name: str = "shop") -> SignIns:
    states = SignIns(project.folder / ".runops" / "private" / "sessions")
    (project.folder / ".runops" / "private").mkdir(parents=True, exist_ok=True)
    asyncio.run(states.save(name, {"cookies": [cookie()], "origins": STORED}))
    return states


def test_states_are_listed_and_deleted(project: Project) -> None:
    """The list has names, times and sites and nothing that signs in; a deleted state is gone, and so is one that never was."""
    assert "no signed-in states" in project.here("sign-ins").stderr
    save(project)
    for arguments in ((), ("--json",)):
        listed = project.here("sign-ins", *arguments)
        assert "shop.test" in listed.stdout
        assert "v-93118" not in listed.stdout + listed.stderr
        assert "t-61520" not in listed.stdout + listed.stderr
    assert project.here("sign-ins", "delete", "shop").returncode == 0
    again = project.here("sign-ins", "delete", "shop")
    assert (again.returncode, "error[session-not-found]" in again.stderr) == (2, True)


def test_a_state_is_carried_to_another_project(project: Project, tmp_path: Path) -> None:
    """An exported file is readable by its owner only; imported elsewhere it is the same state, of the same time."""
    states = save(project)
    file = tmp_path / "state.json"
    assert project.here("sign-ins", "export", "shop", str(file)).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    (tmp_path / "two").mkdir()
    other = Project(tmp_path / "two")
    assert other.here("sign-ins", "import", "mine", str(file)).returncode == 0
    arrived = SignIns(other.folder / ".runops" / "private" / "sessions")
    before, after = states.read("shop"), arrived.read("mine")
    assert before is not None
    assert after is not None
    assert (after.content, after.saved_at) == (before.content, before.saved_at)
    kept = other.folder / ".runops" / "private" / "sessions" / "mine.json"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_state_is_piped(project: Project, tmp_path: Path) -> None:
    """`-` writes the state, and with `--json` nothing else, to a pipe, and reads it from one, as a CI job does with its own secrets."""
    save(project)
    (tmp_path / "two").mkdir()
    other = Project(tmp_path / "two")
    piped = project.runops("sign-ins", "export", "shop", "-", "--json")
    assert json.loads(piped.stdout)["cookies"] == [cookie()]
    done = other.runops("sign-ins", "import", "shop", "-", said=piped.stdout)
    assert done.returncode == 0, done.stderr
    assert "shop.test" in other.here("sign-ins").stdout


def test_no_state_on_a_terminal(project: Project) -> None:
    """A terminal never shows a state."""
    save(project)
    with project.terminal("sign-ins", "export", "shop", "-") as terminal:
        assert terminal.wait() == 2
        assert "error[session-shown]" in terminal.text
        assert "v-93118" not in terminal.text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        ("{}", "`cookies` is missing"),
        ('{"cookies": [{"name": "sid", "value": "v-93118"}], "origins": []}', "`cookies.0.domain` is missing"),
        ('{"cookies": [], "origins": [], "saved_at": "v-93118"}', "`saved_at`"),
    ],
)
def test_files_without_a_state(data: str, said: str, project: Project) -> None:
    """A file of another form is refused with the place of its first fault, and without its content."""
    project.write("state.json", data)
    done = project.here("sign-ins", "import", "shop", "state.json")
    assert (done.returncode, "error[session-unreadable]" in done.stderr) == (2, True)
    assert said in done.stderr
    assert "v-93118" not in done.stderr


def test_a_file_of_playwright(project: Project) -> None:
    """A file of Playwright's `storageState`, which has no time, counts as saved now."""
    project.write("state.json", json.dumps({"cookies": [cookie()], "origins": STORED}))
    assert project.here("sign-ins", "import", "shop", "state.json").returncode == 0
    state = SignIns(project.folder / ".runops" / "private" / "sessions").read("shop")
    assert state is not None
    assert state.age < 60


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("exprt", "shop", "x"), "usage"),
        (("export", "shop"), "usage"),
        (("delete", "shop", "x"), "usage"),
        (("export", "../shop", "x"), "bad-input"),
        (("export", "shop", "x"), "session-not-found"),
        (("import", "shop", "missing.json"), "session-unreadable"),
    ],
)
def test_wrong_words(words: tuple[str, ...], code: str, project: Project) -> None:
    """A command line that cannot be carried out is an error with a fix, and writes nothing."""
    done = project.here("sign-ins", *words)
    assert (done.returncode, f"error[{code}]" in done.stderr) == (2, True)
    assert not (project.folder / ".runops").exists()
