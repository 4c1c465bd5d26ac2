"""The options of a build: its goal, its settings, and what its log stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as draw

from director.cli import session_options
from director.cli.builds import options
from director.draft.goal import Goal
from director.session.state import SessionState
from nodes.errors import UsageError
from runtime.context import limits
from runtime.log import entries
from runtime.settings import settings
from runtime.workspace import host
from tests.now import let_go, now

NAMES = draw.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
VALUES = draw.one_of(draw.text(), draw.integers(), draw.booleans(), draw.none(), draw.lists(draw.text(), max_size=3))
GOALS = draw.builds(
    Goal,
    goal=draw.text(min_size=1),
    url=draw.none() | draw.just("http://127.0.0.1:8765/login"),
    save=draw.just(Path("/x/built.yaml")),
    runs=draw.integers(1, 10),
    policy=draw.sampled_from(["ask", "allow", "hold"]),
    inputs=draw.dictionaries(NAMES, VALUES, max_size=3),
    secrets=draw.lists(NAMES, max_size=3, unique=True).map(tuple),
    force=draw.booleans(),
)


@hypothesis.given(GOALS)
def test_a_goal_survives_the_log(goal: Goal) -> None:
    """A resumed build reads the same goal from the log."""
    header = entries.SessionHeader(purpose="build", versions={}, build=goal.as_logged())
    read = entries.decode(entries.encode(entries.Scope(path="", event="opened", node="session", session=header)))
    assert isinstance(read, entries.Scope)
    assert read.session is not None
    assert read.session.build is not None
    back = Goal.of(read.session.build)
    assert back.as_logged() == goal.as_logged()


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and no settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.parametrize(
    ("given", "ci", "policy"),
    [({}, "", "ask"), ({"yes": True}, "", "hold"), ({}, "true", "hold"), ({"yes": True, "effects": "ask"}, "1", "ask")],
)
def test_actions_are_asked_for_where_a_person_is_present(
    given: dict[str, Any], ci: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--yes` and in CI actions are withheld, unless `--effects` says otherwise."""
    monkeypatch.setenv("CI", ci)
    assert options.BuildOrder(goal="x", **given).as_goal().policy == policy


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"goal": "sign in with hunter2222"}, "the goal"),
        ({"url": "http://127.0.0.1:1/?key=hunter2222"}, "`--url`"),
        ({"save": Path("hunter2222.yaml")}, "`--save`"),
        ({"inputs": ("user=ada", "key=hunter2222")}, "`-i key`"),
    ],
)
def test_a_goal_that_contains_a_secret_starts_no_build(
    given: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the option but not the secret, since a mask would be stored and used as a value."""
    monkeypatch.setenv("KEY", "hunter2222")
    chosen = settings.load(home=tmp_path / ".runops", model="m", model_base_url="http://127.0.0.1:9")
    wanted: dict[str, Any] = {"goal": "x", "secrets": ("KEY",), **given}
    order = options.BuildOrder(**wanted)
    with pytest.raises(UsageError) as refused:
        now(options.open_build(order, host.of_command(chosen), session_options.Models.of(host.of_command(chosen))))
    assert refused.value.code == "secret-in-input"
    assert refused.value.message.startswith(f"{named}: ")
    assert "hunter2222" not in str(refused.value.as_json())
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize("url", [None, "https://shop.test/", "http://127.0.0.1.evil.test/"])
def test_effects_allow_is_refused_for_other_machines(url: str | None) -> None:
    """`--effects allow` is refused for a remote site, and without a site."""
    with pytest.raises(UsageError, match="effects allow"):
        options.BuildOrder(goal="x", url=url, effects="allow").as_goal()


@pytest.mark.parametrize(
    "url",
    [
        "shop.test",
        "ftp://shop.test",
        "http://",
        "http://a:b@shop.test",
        "javascript:1",
        "http://x:0",
        "http://a b/",
        "http://a\nb/",
        "http://x/\udcff",
    ],
)
def test_an_address_must_be_a_site(url: str) -> None:
    """An address must be complete, and without a password."""
    with pytest.raises(UsageError, match=r"--url|no address"):
        options.BuildOrder(goal="x", url=url).as_goal()


@pytest.mark.parametrize(
    "name",
    ["folder.yaml", "plain/x.yaml", f"{'x' * 250}.yaml", f"{'x' * 247}.yaml", f"{'x' * 300}/x.yaml", "\udcff.yaml"],
)
def test_an_unwritable_file_is_refused_before_any_cost(name: str, tmp_path: Path) -> None:
    """A folder, a path below a file, and a name too long for workflow or notes are refused, even with `--force`."""
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "plain").touch()
    with pytest.raises(UsageError, match="could not be written"):
        options.BuildOrder(goal="x", save=Path(name), force=True).as_goal()
    assert options.BuildOrder(goal="x", save=Path("new/folder/x.yaml")).as_goal().save == tmp_path / "new/folder/x.yaml"


def test_a_dangling_link_counts_as_existing(tmp_path: Path) -> None:
    """A dangling link is not overwritten without `--force`."""
    (tmp_path / "x.yaml").symlink_to("nowhere.yaml")
    with pytest.raises(UsageError, match="already"):
        options.BuildOrder(goal="x", save=Path("x.yaml")).as_goal()


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ("Pay the open orders!", "pay-the-open-orders.yaml"),
        ("…", "workflow.yaml"),
        ("Größe ändern", "grosse-andern.yaml"),
    ],
)
def test_an_unnamed_file_is_named_after_the_goal(goal: str, name: str, tmp_path: Path) -> None:
    """The file is in the folder of workflows if there is one."""
    assert options.BuildOrder(goal=goal).as_goal().save == tmp_path / name
    (tmp_path / "workflows").mkdir()
    assert options.BuildOrder(goal=goal).as_goal().save == tmp_path / "workflows" / name


@pytest.mark.parametrize("given", [{"inputs": ("a b=1",)}, {"secrets": ("my-secret",)}, {"inputs": ("a=1", "a=2")}])
def test_invalid_names_are_refused_before_the_build_starts(given: dict[str, Any]) -> None:
    """Inputs and secrets need valid names, each once."""
    with pytest.raises(UsageError):
        options.BuildOrder(goal="x", **given).as_goal()


def test_settings_override_the_defaults_of_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build keeps more outputs in full, unless settings say otherwise."""
    defaults = options.settings_for(settings.load())
    assert defaults.window_recent_outputs == 5_000
    assert limits.of_settings(defaults).checkpoint_at == 60_000
    assert options.settings_for(settings.load(window_strategy="injected")).window_checkpoint_at is None
    assert options.settings_for(settings.load(), "clean").window_checkpoint_at is None
    monkeypatch.setenv("RUNOPS_WINDOW_RECENT_OUTPUTS", "0")
    chosen = options.settings_for(settings.load())
    assert chosen.window_recent_outputs == 0


def test_effects_and_runs_may_change_when_a_build_resumes(tmp_path: Path) -> None:
    """New values stay for later resumes. `--effects allow` still needs a site on this machine; another site and inputs are taken."""
    chosen = settings.load(home=tmp_path / ".runops", model_director="m", model_base_url="http://127.0.0.1:9")
    here = host.of_command(chosen)
    models = session_options.Models.of(here)

    def goal(**given: Any) -> Goal:
        found = session_options.find(here, "last", {}, builds=True) if "resume" in given else None
        writer = now(options.open_build(options.BuildOrder(**given), here, models, found))
        now_told = SessionState(writer).goal
        let_go(writer.conversation)
        return now_told

    first = goal(goal="x", url="https://shop.test", save=tmp_path / "x.yaml")
    options.BuildOrder(resume="last", effects="hold", runs=3).check()
    assert (first.runs, goal(resume="last", effects="hold", runs=3).runs) == (2, 3)
    resumed = goal(resume="last")
    assert (resumed.policy, resumed.runs, resumed.goal) == ("hold", 3, "x")
    with pytest.raises(UsageError, match="on this machine only"):
        goal(resume="last", effects="allow")
    assert goal(resume="last").policy == "hold"
    again = goal(resume="last", url="http://127.0.0.1:1", inputs=("n=1",))
    assert (again.url, again.inputs, again.goal, again.save) == (
        "http://127.0.0.1:1",
        {"n": "1"},
        "x",
        first.save,
    )
