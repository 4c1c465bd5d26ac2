"""What the command line of a build comes to: its wish, its settings, and what its log keeps of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as draw

from director.cli import session_options
from director.cli.builds import options
from director.draft.goal import Goal
from director.session import settings as session_settings
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
def test_a_goal_comes_back_from_the_log_as_it_was(goal: Goal) -> None:
    """Whatever a person wants, whoever continues with the build wants the same."""
    header = entries.SessionHeader(purpose="build", versions={}, build=goal.as_logged())
    read = entries.decode(entries.encode(entries.Scope(path="", event="opened", node="session", session=header)))
    assert isinstance(read, entries.Scope)
    assert read.session is not None
    assert read.session.build is not None
    back = Goal.of(read.session.build)
    assert back.as_logged() == goal.as_logged()


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and nothing set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.parametrize(
    ("given", "ci", "policy"),
    [({}, "", "ask"), ({"yes": True}, "", "hold"), ({}, "true", "hold"), ({"yes": True, "effects": "ask"}, "1", "ask")],
)
def test_actions_are_asked_for_where_somebody_is_there(
    given: dict[str, Any], ci: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--yes` and in CI they are held, unless something else was said."""
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
def test_a_goal_that_holds_a_secret_begins_nothing(
    given: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mask would be kept in its place, and used as a value; the error says where it stands, and not what it is."""
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
def test_nothing_is_done_unasked_on_a_site_that_is_not_here(url: str | None) -> None:
    """`--effects allow` is refused, also where no site is named."""
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
def test_an_address_is_one_of_a_site(url: str) -> None:
    """Whole, and without a password in it."""
    with pytest.raises(UsageError, match=r"--url|no address"):
        options.BuildOrder(goal="x", url=url).as_goal()


@pytest.mark.parametrize(
    "name",
    ["folder.yaml", "plain/x.yaml", f"{'x' * 250}.yaml", f"{'x' * 247}.yaml", f"{'x' * 300}/x.yaml", "\udcff.yaml"],
)
def test_a_place_where_nothing_can_be_left_is_refused_before_anything_is_paid(name: str, tmp_path: Path) -> None:
    """A folder, what stands in a file, a name that is too long for the workflow or for its notes; what `--force` cannot change either."""
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "plain").touch()
    with pytest.raises(UsageError, match="could not be written"):
        options.BuildOrder(goal="x", save=Path(name), force=True).as_goal()
    assert options.BuildOrder(goal="x", save=Path("new/folder/x.yaml")).as_goal().save == tmp_path / "new/folder/x.yaml"


def test_a_link_to_nothing_is_there_already(tmp_path: Path) -> None:
    """It is not written over unless that was said."""
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
def test_a_file_that_nobody_named_is_called_after_the_goal(goal: str, name: str, tmp_path: Path) -> None:
    """In the folder of workflows, where there is one."""
    assert options.BuildOrder(goal=goal).as_goal().save == tmp_path / name
    (tmp_path / "workflows").mkdir()
    assert options.BuildOrder(goal=goal).as_goal().save == tmp_path / "workflows" / name


@pytest.mark.parametrize("given", [{"inputs": ("a b=1",)}, {"secrets": ("my-secret",)}, {"inputs": ("a=1", "a=2")}])
def test_what_no_workflow_can_name_is_refused_before_anything_is_begun(given: dict[str, Any]) -> None:
    """Inputs and secrets have names that a file can have, each once."""
    with pytest.raises(UsageError):
        options.BuildOrder(goal="x", **given).as_goal()


def test_what_is_set_counts_before_what_a_build_has_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build waits longer for an answer and keeps more outputs whole, unless somebody says otherwise."""
    by_itself = options.settings_for(settings.load())
    assert (by_itself.model_timeout, by_itself.window_recent_outputs) == (300.0, 5_000)
    assert limits.of_settings(by_itself).max_messages is None
    monkeypatch.setenv("RUNOPS_MODEL_TIMEOUT", "60")
    monkeypatch.setenv("RUNOPS_WINDOW_RECENT_OUTPUTS", "0")
    said = options.settings_for(settings.load())
    assert (said.model_timeout, said.window_recent_outputs) == (60.0, 0)


def test_actions_and_runs_may_be_others_when_a_build_goes_on(tmp_path: Path) -> None:
    """What is said then holds from then on, whoever continues with it; actions without a question stay with sites on this machine."""
    chosen = settings.load(home=tmp_path / ".runops", model_director="m", model_base_url="http://127.0.0.1:9")
    here = host.of_command(chosen)
    models = session_options.Models.of(here)

    def goal(**given: Any) -> Goal:
        found = session_options.find(here, "last", {}, "build") if "resume" in given else None
        writer = now(options.open_build(options.BuildOrder(**given), here, models, found))
        build = writer.history.header.build if writer.history.header is not None else None
        assert build is not None
        found = session_settings.with_settings(Goal.of(build), SessionState(writer))
        let_go(writer.conversation)
        return found

    first = goal(goal="x", url="https://shop.test", save=tmp_path / "x.yaml")
    options.BuildOrder(resume="last", effects="hold", runs=3).check()
    assert (first.runs, goal(resume="last", effects="hold", runs=3).runs) == (2, 3)
    again = goal(resume="last")
    assert (again.policy, again.runs, again.goal) == ("hold", 3, "x")
    with pytest.raises(UsageError, match="on this machine only"):
        goal(resume="last", effects="allow")
    assert goal(resume="last").policy == "hold"
    with pytest.raises(UsageError, match="--url"):
        options.BuildOrder(resume="last", url="http://127.0.0.1:1").check()
