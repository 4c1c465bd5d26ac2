"""Settings: precedence, refusals, the home of runs, and secrets."""

from pathlib import Path

import pytest

from nodes.errors import SetupError, UsageError
from runtime.secrets import sources
from runtime.settings import settings


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no setting from outside."""
    for name in (
        "RUNOPS_HOME",
        "RUNOPS_LINGER",
        "RUNOPS_BROWSER",
        "RUNOPS_BROWSER_MODE",
        "RUNOPS_HEADED",
        "RUNOPS_KEEP_BROWSER",
        "CI",
    ):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_each_place_wins_over_the_next(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags override the environment, then `.env`, then pyproject.toml, then the default."""
    assert settings.load().linger == 43200
    (here / "pyproject.toml").write_text("[tool.runops]\nlinger = 4\n")
    assert settings.load().linger == 4
    (here / ".env").write_text("RUNOPS_LINGER=3\nOTHER=1\n")
    assert settings.load().linger == 3
    monkeypatch.setenv("RUNOPS_LINGER", "2")
    assert settings.load().linger == 2
    assert settings.load(linger=1.0, headed=None).linger == 1


def test_a_browser_may_be_named_as_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is looked up on PATH; a name not found there, or with a slash, is a path."""
    program, here = tmp_path / "bin" / "my-chrome", tmp_path / "here"
    for each in (program.parent, here):
        each.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", str(program.parent))
    for given, meant in (
        ("my-chrome", program),
        ("./my-chrome", here / "my-chrome"),
        ("no-chrome", here / "no-chrome"),
    ):
        monkeypatch.setenv("RUNOPS_BROWSER", given)
        assert settings.load().browser == meant
        monkeypatch.delenv("RUNOPS_BROWSER")
        (here / "pyproject.toml").write_text(f"[tool.runops]\nbrowser = '{given}'\n")
        assert settings.load().browser == meant
        (here / "pyproject.toml").unlink()


def test_failures_are_traced_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `CI` set, the default of ``trace`` is ``on-failure``; else, and for a program, ``off``."""
    assert settings.load().trace == "off"
    monkeypatch.setenv("CI", "true")
    assert (settings.load().trace, settings.load(trace="off").trace) == ("on-failure", "off")
    assert settings.Settings().trace == "off"


def test_a_browser_does_not_linger_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `CI` set, the default linger is 0."""
    monkeypatch.setenv("CI", "true")
    assert settings.load().linger == 0


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """`RUNOPS_BROWSER=` means the same as an unset variable."""
    monkeypatch.setenv("RUNOPS_BROWSER", "")
    assert settings.load().browser is None


@pytest.mark.parametrize(
    ("place", "prepare"),
    [
        ("--linger", lambda here, environment: {"linger": "soon"}),
        ("RUNOPS_LINGER", lambda here, environment: environment("RUNOPS_LINGER", "soon")),
        (".env", lambda here, environment: (here / ".env").write_text("RUNOPS_LINGER=soon\n")),
        (
            "pyproject.toml",
            lambda here, environment: (here / "pyproject.toml").write_text("[tool.runops]\nlinger = 'soon'\n"),
        ),
    ],
)
def test_a_bad_value_is_named_with_its_place(place: str, prepare, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of an unusable value names the value and its place."""
    flags = prepare(here, monkeypatch.setenv)
    with pytest.raises(UsageError) as caught:
        settings.load(**(flags if isinstance(flags, dict) else {}))
    assert place in caught.value.message
    assert "soon" in caught.value.message


def test_an_unknown_setting_in_pyproject_names_the_nearest(here: Path) -> None:
    """A mistyped setting is refused with the nearest name."""
    (here / "pyproject.toml").write_text("[tool.runops]\nbrowser-mod = 'own'\n")
    with pytest.raises(UsageError) as caught:
        settings.load()
    assert "browser_mode" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("[tool.runops]\n\nbrowser-mod = 'own'\n", "browser-mod", 3),
        ("# lingr\n[tool]\nrunops.linger = 3\nrunops.lingr = 4\n", "lingr", 4),
        ("[tool.runops]\nreset = '''\nlingr = 3\n'''\nlingr = 4\n", "lingr", 5),
        ("[tool.runops.price.m]\ninput = 1\n", "price", 1),
        ("[other]\nlingr = 1\n[tool.runops]\n'lingr' = 4", "lingr", 4),
    ],
    ids=["bare", "dotted", "after-a-long-text", "table", "quoted"],
)
def test_an_unknown_setting_in_pyproject_has_its_line(text: str, name: str, line: int, here: Path) -> None:
    """However the table is written, an unknown setting is named with file and line."""
    (here / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        settings.load()
    assert f"unknown setting `{name}`" in caught.value.message
    assert caught.value.message.endswith(f"pyproject.toml:{line}")


@pytest.mark.parametrize("place", ["environment", ".env"])
def test_a_misspelt_variable_is_refused(place: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is nearly a setting is refused with it, since it would have no effect; one that is not near is left alone."""
    for name in ("RUNOPS_SHOP_PASSWORD", "RUNOPS_TEST_WHOLE", "RUNOPS_MODEL_KEY"):
        monkeypatch.setenv(name, "1")
    (here / ".env").write_text("RUNOPS_IMAGE=1\n")
    settings.load()
    if place == "environment":
        monkeypatch.setenv("RUNOPS_MODEL_CALS", "none")
    else:
        (here / ".env").write_text("RUNOPS_IMAGE=1\n\nexport RUNOPS_MODEL_CALS=none\n")
    with pytest.raises(UsageError) as caught:
        settings.load()
    assert (caught.value.code, "RUNOPS_MODEL_CALLS" in str(caught.value.fix)) == ("bad-setting", True)
    assert ("env:3" in caught.value.message) == (place == ".env")


def test_the_place_of_a_setting(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place that counts is named: a variable, else a line of `.env`, else a line of pyproject.toml, else the default."""
    assert str(settings.place_of("linger")) == "default"
    (here / "pyproject.toml").write_text("[project]\nname = 'linger'\n[tool.runops]\nlinger = 4\n")
    assert str(settings.place_of("linger")) == "pyproject.toml:4"
    (here / ".env").write_text("A='1\n2'\nRUNOPS_LINGER=2\nrunops_linger=\n")
    assert str(settings.place_of("linger")) == ".env:3"
    monkeypatch.setenv("RUNOPS_LINGER", "2")
    assert str(settings.place_of("linger")) == "RUNOPS_LINGER"


@pytest.mark.parametrize("text", ["[tool.runops", "[tool]\nrunops = 3\n"])
def test_a_broken_pyproject_is_refused_by_name(text: str, here: Path) -> None:
    """A pyproject.toml that cannot be read is refused, and named."""
    (here / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        settings.load()


def test_paths_in_pyproject_are_relative_to_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project's `home` is the same from every folder below it."""
    (here / "pyproject.toml").write_text("[tool.runops]\nhome = 'kept'\n")
    (here / "deep").mkdir()
    monkeypatch.chdir(here / "deep")
    assert settings.load().home == here / "kept"


def test_runs_are_stored_in_the_nearest_folder_above(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest `.runops` above is used; else one beside pyproject.toml or `.git`, else in the current folder."""
    deep = here / "a" / "b"
    deep.mkdir(parents=True)
    assert settings.find_home(deep) == deep / ".runops"
    (here / ".git").mkdir()
    assert settings.find_home(deep) == here / ".runops"
    (here / "a" / "pyproject.toml").write_text("")
    assert settings.find_home(deep) == here / "a" / ".runops"
    (here / ".runops").mkdir()
    assert settings.find_home(deep) == here / ".runops"
    monkeypatch.setenv("RUNOPS_HOME", "elsewhere")
    assert settings.load().home == here / "elsewhere"


def test_a_folder_of_another_user_is_skipped(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `.runops` that another user owns is not used."""
    (here / ".runops").mkdir()
    deep = here / "mine"
    deep.mkdir()
    monkeypatch.setattr("os.getuid", lambda: here.stat().st_uid + 4711)
    assert settings.find_home(deep) == deep / ".runops"


def test_a_secret_comes_from_the_environment_then_from_env_files(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment wins over `.env` beside the workflow, which wins over `.env` of the current folder."""
    beside = tmp_path / "flows"
    beside.mkdir()
    (here / ".env").write_text("SHOP_PASSWORD=from-here\n")
    assert sources.read(sources.Environment(), ["SHOP_PASSWORD"], beside) == {"SHOP_PASSWORD": "from-here"}
    (beside / ".env").write_text("SHOP_PASSWORD=from-beside\n")
    assert sources.read(sources.Environment(), ["SHOP_PASSWORD"], beside) == {"SHOP_PASSWORD": "from-beside"}
    monkeypatch.setenv("SHOP_PASSWORD", "from-outside")
    assert sources.read(sources.Environment(), ["SHOP_PASSWORD"], beside) == {"SHOP_PASSWORD": "from-outside"}


def test_a_secret_in_an_env_file_is_taken_as_written(here: Path) -> None:
    """A dollar sign in a password is a dollar sign."""
    (here / ".env").write_text("SHOP_PASSWORD=pa${HOME}ss$word\n")
    assert sources.read(sources.Environment(), ["SHOP_PASSWORD"]) == {"SHOP_PASSWORD": "pa${HOME}ss$word"}


def test_missing_secrets_are_all_named_with_both_ways_to_set_them(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All missing secrets are named in one error, with both ways to set one."""
    for name in ("FIRST_SECRET", "CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SetupError) as caught:
        sources.read(sources.Environment(), ["FIRST_SECRET", "SECOND_SECRET"], here / "flows")
    assert "FIRST_SECRET, SECOND_SECRET" in caught.value.message
    assert "export FIRST_SECRET=" in str(caught.value.fix)
    assert f"into {here / '.env'}" in str(caught.value.fix)
    assert caught.value.exit == 3


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, "`MY_SECRET: ${{ secrets.MY_SECRET }}` to `env:` of the job"),
        ({"CI": "true"}, "add `MY_SECRET` to the secret variables of the project"),
    ],
)
def test_a_job_of_ci_is_told_of_the_settings_of_its_project(
    variables: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is sent to the secrets of its repository or project: a `.env` of its machine would not stay."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    fix = sources.Environment().how_to_set("MY_SECRET")
    assert said in fix
    assert ".env" not in fix


def test_a_short_secret_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five characters cannot be masked; the error names the secret and does not show it."""
    monkeypatch.setenv("SHOP_PASSWORD", "qzxwv")
    with pytest.raises(SetupError) as caught:
        sources.read(sources.Environment(), ["SHOP_PASSWORD"])
    assert "SHOP_PASSWORD" in caught.value.message
    assert "qzxwv" not in str(caught.value.as_json())


def test_an_env_file_that_is_no_text_is_refused_without_its_content(here: Path) -> None:
    """A `.env` that is not UTF-8 is refused by its name alone."""
    (here / ".env").write_bytes(b"SHOP_PASSWORD=\xff\xfegeheim\n")
    with pytest.raises(SetupError) as caught:
        sources.read(sources.Environment(), ["SHOP_PASSWORD"])
    assert ".env" in caught.value.message
    assert "geheim" not in str(caught.value.as_json())
