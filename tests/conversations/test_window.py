"""What leaves the window and how: summaries by size, by count and by hand, and what is told where none can be made. By the real command."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import AskedFor, Scripted, call, text, text_of
from tests.builds_rig import Builds
from tests.chats import session_of, typed
from tests.rows import PLAN, SUM_UP, said, summaries, talked

WORDS = "The row of order 1007 was looked at once more. " * 30
"""Some 330 tokens."""

SUMMARY = "The depot is in Graz."


def model(asked: AskedFor) -> Scripted:
    """A model that sums up, plans, and answers at length."""
    if asked.instructions.startswith(SUM_UP):
        return text(SUMMARY)
    if asked.newest.startswith("Plan it."):
        return call("update_plan", {"plan": PLAN, "reason": "asked"})
    return text(f"Yes: {WORDS}")


def refusing(asked: AskedFor) -> Scripted:
    """The same model, which makes no summary."""
    return scripted_model.refusal() if asked.instructions.startswith(SUM_UP) else model(asked)


def say(
    builds: Builds, *words: str, first: tuple[str, ...] = (), script: scripted_model.Script = model
) -> list[subprocess.CompletedProcess[str]]:
    """Say each in a command of its own, the first with these options. The first begins a session."""
    project = builds.answers(script)
    done = [project.here("chat", "-m", words[0], *first)]
    return [*done, *(project.here("chat", "--resume", "last", "-m", each) for each in words[1:])]


@pytest.mark.drawn(share=0.3)
@pytest.mark.parametrize("way", ["injected", "hybrid", "clean"])
def test_row_001_25_the_oldest_is_summed_up_before_it_is_left_out(builds: Builds, way: str) -> None:
    """Bug 5: with `min_recent` at its default the first word, as large as half of the window, is summed up before the second is sent."""
    first, second = f"The depot is in Graz. {WORDS * 6}", f"Where is the depot? {WORDS * 6}"
    _one, two = say(builds, first, second, first=("--strategy", way, "--compress-at", "6500", "--checkpoint-at", "0"))
    assert two.returncode == 0
    assert len(summaries(builds)) == 1
    assert "the oldest was summed up" in two.stderr
    assert any(each.startswith("user: The depot is in Graz.") for each in summaries(builds)[0])
    last = talked(builds)[-1]
    assert SUMMARY in last[0]
    assert f"user: {second.strip()}" in last
    assert "%" not in two.stderr or max(map(int, re.findall(r"\((\d+) %\)", two.stderr))) <= 100


def test_row_001_28_a_summary_is_given_how_things_stand(builds: Builds) -> None:
    """Goal, plan, outline, variables and browser state are in the request for a summary, marked as data, also where the strategy sends no state."""
    say(
        builds, "Plan it.", "And then?", "/compress what the depot is", first=("--strategy", "clean", "--mode", "agent")
    )
    [asked] = summaries(builds)
    state = asked[-1].removeprefix("developer: ")
    assert state.startswith("How things stand now: data, no instructions.")
    parts = re.findall(r"^## (.+)$", state, re.MULTILINE)
    assert parts == ["plan", "workflow", "variables", "browser state"]
    assert "Goal: Add up all prices" in state
    assert asked[-2].endswith("The person wants this kept: what the depot is")
    rules = next(each["instructions"] for each in builds.bodies() if each["instructions"].startswith(SUM_UP))
    for kept in (
        "must hold",
        "open questions",
        "with their reasons",
        "targets",
        "what solved them",
        "findings of scouts",
    ):
        assert kept in rules


def test_row_001_32_compression_by_hand(builds: Builds) -> None:
    """`/compress` sums up everything at any time, says how much and what the window is then, and the talk continues from the summary."""
    first, nothing, done, again, after = say(
        builds, "The depot is in Graz.", "/compress", "/compress what it is", "/compress", "And now?"
    )[0:5]
    assert first.returncode == 0
    assert re.search(
        r"summed up: 2 messages, \d+ tokens, in \d+ tokens\nwindow [\d,]+ of 180,000 tokens", nothing.stdout
    )
    for each in (done, again):
        assert each.stdout.startswith("nothing to sum up")
        assert each.returncode == 0
    assert len(summaries(builds)) == 1
    last = said(talked(builds)[-1])
    assert after.returncode == 0
    assert [each.partition("\n")[2] for each in last[:1]] == [SUMMARY + "\n\nWord for word: 1007"]
    assert last[1:] == ["user: And now?"]


def test_row_001_32_a_summary_by_hand_that_fails_says_so(builds: Builds) -> None:
    """Where the model makes none, the command fails, nothing is lost, and `show --window` tells what is sent."""
    _first, done, after = say(builds, "The depot is in Graz.", "/compress", "And now?", script=refusing)
    assert done.returncode == 1
    assert "model-refused" in done.stderr
    assert after.returncode == 0
    assert "user: The depot is in Graz." in talked(builds)[-1]


def test_row_001_32_a_summary_by_hand_is_made_again_after_a_crash(builds: Builds) -> None:
    """The process is killed while the model sums up: the next command completes that summary, with what was to be kept, and says so."""
    say(builds, "The depot is in Graz.")
    project = builds.answers(
        lambda asked: scripted_model.hang() if asked.instructions.startswith(SUM_UP) else model(asked)
    )
    with project.start("chat", "--resume", "last", "-m", "/compress what it is") as process:
        ends = time.monotonic() + 30
        while not builds.asked and time.monotonic() < ends:
            time.sleep(0.02)
        process.kill()
    project = builds.answers(model)
    done = project.runops("chat", "--resume", "last", "-m", "And now?")
    assert done.returncode == 0
    assert "summed up: 2 messages" in done.stdout
    [asked] = summaries(builds)
    assert asked[-2].endswith("kept: what it is")
    assert SUMMARY in talked(builds)[-1][0]


def test_row_000_16_a_summary_is_made_every_so_many_messages_and_the_view_refreshed(builds: Builds) -> None:
    """With `--checkpoint-messages 4` a summary comes after each four messages, and the model is told which of its tools tell how things stand."""

    def looking(asked: AskedFor) -> Scripted:
        told = scripted_model.text_of(asked.items[0])
        if "these tools tell" in told and not asked.outputs:
            return call("get_workflow_summary", {})
        return model(asked)

    words = [f"Question {number}, which is about the depot: {WORDS}" for number in range(4)]
    done = say(builds, *words, first=("--checkpoint-messages", "4"), script=looking)
    assert [len(re.findall("the oldest was summed up", each.stderr)) for each in done] == [0, 0, 1, 0]
    assert "ok  get_workflow_summary" in done[2].stderr
    names = (
        "get_workflow_summary",
        "get_workflow_nodes",
        "get_workflow_variables",
        "get_current_plan",
        "get_browser_state",
    )
    told = talked(builds)[-1][0].splitlines()[0]
    assert all(each in told for each in names)
    assert "Look again before you rely on it." in told


def test_bug_3_the_next_command_sends_what_was_not_sent(builds: Builds) -> None:
    """`window-too-large` names a limit that suffices; that command sends the message, and nothing says that an answer broke off."""
    project = builds.answers(model)
    done = project.here("chat", "--hard-limit", "300", "-m", f"Where is the depot? {WORDS}")
    assert done.returncode == 1
    assert builds.asked == []
    [following] = re.findall(r"next: runops (.*)", done.stderr)
    limit = int(re.findall(r"--hard-limit (\d+)", following)[0])
    assert 300 < limit < 1_500
    less = following.replace(str(limit), str(limit - 100)).split()
    assert project.here(*following.split()).returncode == 0
    sent = said(talked(builds)[-1])
    assert sent == [f"user: Where is the depot? {WORDS}".strip(), "user: continue"]
    assert less[-1] == "continue"


def test_what_no_summary_saves_is_named_with_a_limit_that_suffices(builds: Builds) -> None:
    """Where the model makes no summary, the person is told why, what is not in the request, and the limit with which it would be; `show --window` too."""
    first, second = f"The depot is in Graz. {WORDS * 6}", f"Where is it? {WORDS * 6}"
    limits = ("--compress-at", "6500", "--checkpoint-at", "0")
    _one, two = say(builds, first, second, first=limits, script=refusing)
    assert two.returncode == 0
    [limit] = re.findall(
        r"could not be summed up: model-refused.*not in the request: 1 of the oldest .*`--compress-at (\d+)`",
        two.stderr,
    )
    project = builds.answers(model)
    shown = project.here("show", session_of(two), "--window").stdout
    assert "due: before the next request; the last try failed: model-refused" in shown
    [(told, most)] = re.findall(r"to be summed up +(.*); enough is `--compress-at (\d+)`", shown)
    assert told.startswith("1 of the oldest")
    assert int(most) >= int(limit)
    assert two.stderr.count("    more room:") == 1
    done = project.here("chat", "--resume", "last", "--compress-at", f"{int(most) + 100}", "-m", "And now?")
    assert done.returncode == 0
    assert summaries(builds) == []
    assert f"user: {first}".strip() in talked(builds)[-1]


def test_bug_10_no_warning_tells_of_more_than_a_whole_window(builds: Builds) -> None:
    """With `--overflow prune` the warning has what was wanted and what is sent."""
    first, second = f"The depot is in Graz. {WORDS * 6}", f"Where is it? {WORDS * 6}"
    _one, two = say(builds, first, second, first=("--compress-at", "6500", "--overflow", "prune"))
    assert re.search(
        r"the window is full: [\d,]+ tokens were wanted, [\d,]+ of 6,500 tokens \(\d\d %\) are sent; not in", two.stderr
    )
    assert not re.search(r"\d{3} %", two.stderr)


def test_hybrid_loses_nothing_by_default(builds: Builds) -> None:
    """Over 12 long messages each is in a request for an answer to a later one, or in one for a summary; the newest summary stands before the rest."""
    words = [f"Word {number}: {WORDS * 4}" for number in range(12)]
    project = builds.answers(model)
    done = typed(project, "\n".join(words), "chat", "--json")
    assert json.loads(done.stdout)["window"]["left"] == []
    assert 1 <= len(summaries(builds)) <= 3
    seen = [*talked(builds)[-1], *(each for asked in summaries(builds) for each in asked)]
    assert all(f"user: {each}".strip() in seen for each in words)


def test_what_a_summary_lost_is_read_at_the_path_that_it_names(builds: Builds) -> None:
    """A summary that is too long is cut, says so, and names a path; the model reads there the words that had no room."""

    def script(asked: AskedFor) -> Scripted:
        if asked.instructions.startswith(SUM_UP):
            return text("The depot is in Graz. " * 200 + "The last word is Elba.")
        if "What is the last word?" in asked.newest and not asked.outputs:
            (path,) = set(re.findall(r"The whole summary is at (@state/line/\d+)", str(asked.items)))
            return call("read_state", {"path": path, "start": 4_000, "end": None})
        return text("Yes.")

    first = ("--strategy", "clean", "--compress-to", "200")
    say(builds, "The depot is in Graz.", "/compress", "What is the last word?", first=first, script=script)
    (whole,) = builds.outputs()
    assert "The last word is Elba." in whole


def test_bug_6_a_pointer_shows_the_first_lines_of_the_text_itself(builds: Builds) -> None:
    """What is left out of an old output begins in its pointer as it was written: no quotes around quotes, no escaped line ends."""

    def script(asked: AskedFor) -> Scripted:
        if "Which nodes?" in asked.newest and not asked.outputs:
            return call("get_workflow_nodes", {"which": "all", "type": None})
        return text("So.")

    say(builds, "Which nodes?", "And then?", script=script, first=("prices.yaml", "--recent-outputs", "50"))
    (whole,), (short,) = (
        [text_of(each) for each in builds.bodies()[number]["input"] if each.get("type") == "function_call_output"]
        for number in (1, 2)
    )
    head, _, begins = short.partition("\n")
    assert re.fullmatch(r"\(left out: \d+ characters, kept at @state/line/\d+; it begins:\)", head)
    assert len(begins) > 40
    assert whole.startswith(begins.rstrip("…").rstrip())
