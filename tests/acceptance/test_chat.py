"""`runops chat` as a process: its streams, exit codes and slash commands, and how an interrupted session resumes."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import call, cut, text
from tests import hasty
from tests.chats import Chats, session_of, text_of, typed, words_of
from tests.command import Project
from tests.terminal import Terminal

pytestmark = pytest.mark.drawn(share=0.35, of="chat")

DONE = text("It adds up prices.")
CONTINUE = text("failed at the step `total`.")


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def failed_run(project: Project) -> tuple[str, Path]:
    """The id and the file of a run whose step `total` failed."""
    assert project.runops("run", "prices.yaml", "--quiet").returncode == 1
    run = project.runs()[-1]["id"]
    return run, project.folder / ".runops" / "conversations" / f"{run}.jsonl"


# Streams and exit codes.


def test_one_message_is_answered_on_stdout(chats: Chats) -> None:
    """`-m` prints only the answer on stdout. Cost, window usage and the command to continue are on stderr."""
    done = chats.answers(DONE).runops("chat", "prices.yaml", "-m", "What does it do?")
    assert (done.returncode, done.stdout) == (0, "It adds up prices.\n")
    first, *_rest, meter, again = done.stderr.splitlines()
    assert re.fullmatch(r"chat  \w{26}  workflow Add up the prices \(prices\.yaml\): valid", first)
    assert re.fullmatch(
        r"--  1 request  [\d,]+ tokens in  \d+ out  \$[\d.]+  window [\d,]+ of 180,000 tokens \(\d+ %\)", meter
    )
    assert re.fullmatch(r"again  runops chat --resume \w{26}", again)


def test_quiet_prints_only_the_answer(chats: Chats) -> None:
    """`-q` prints the answer and nothing on stderr."""
    done = chats.answers(DONE).runops("chat", "-m", "Hello", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It adds up prices.\n", "")


def test_lines_of_standard_input_are_messages(chats: Chats) -> None:
    r"""Each input line is one message. A line that ends with `\` continues in the next, empty lines are skipped, and end of input exits 0."""
    done = typed(chats.answers(text("One."), text("Two.")), "first\n\nsecond \\\nline\n", "chat")
    assert (done.returncode, done.stdout) == (0, "One.\nTwo.\n")
    assert words_of(chats.bodies()[1])[:3] == ["user: first", "assistant: One.", "user: second \nline"]


def test_json_is_one_object(chats: Chats) -> None:
    """`--json` prints one object with every message and answer, the session and its cost, and nothing else on stdout."""
    done = chats.answers(DONE).runops("chat", "prices.yaml", "-m", "What does it do?", "--json")
    said = json.loads(done.stdout)
    assert (said["version"], said["status"], said["exit"], said["mode"]) == (1, "ended", 0, "chat")
    assert said["words"] == [{"said": "What does it do?", "answer": "It adds up prices.", "error": None}]
    assert said["session"] == session_of(done)
    assert said["about"]["file"].endswith("prices.yaml")
    assert said["costs"]["requests"] == 1
    assert said["window"]["tokens"] > 0


def test_without_a_model_nothing_begins(chats: Chats) -> None:
    """Without a model the command exits 3, names the setting, and leaves no session."""
    done = Project(chats.folder).runops("chat", "-m", "Hello")
    assert done.returncode == 3
    assert "error[model-unset]" in done.stderr
    assert not list(chats.folder.rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nothing.yaml", "-m", "x"), "file-not-found"),
        (("01JD", "-m", "x"), "unknown-run"),
        (("--resume", "last", "-m", "x"), "unknown-session"),
        (("--resume", "last", "--fork", "last"), "usage"),
        (("prices.yaml", "--resume", "last"), "usage"),
        (("--strict", "--hard-limit", "7"), "usage"),
        (("-m", "  "), "usage"),
        (("-m", "x", "--strategy", "cleen"), "usage"),
        (("-m", "x", "--budget", "lots"), "bad-budget"),
    ],
)
def test_a_wrong_command_line_ends_with_2(arguments: tuple[str, ...], code: str, chats: Chats) -> None:
    """A wrong command line exits 2 with an error code, and sends no request."""
    done = chats.answers().runops("chat", *arguments)
    assert done.returncode == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert chats.asked == []


def test_a_used_up_budget_exits_5_and_a_larger_one_continues(chats: Chats) -> None:
    """No request exceeds the budget, and later messages are not tried. The command with a larger budget is printed, and continues."""
    project = chats.answers(text("One."), text("Two."), text("Three."))
    done = typed(project, "first\nsecond\nthird\n", "chat", "--budget", "calls=1")
    assert (done.returncode, done.stdout) == (5, "One.\n")
    assert len(chats.asked) == 1
    again = re.search(r"runops (chat --resume \w+ --budget calls=\d+)", done.stderr)
    assert again is not None
    assert "runops resume" not in done.stderr
    done = project.runops(*again[1].split(), "-m", "again")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Two.\nThree.\n"
    assert [each for each in words_of(chats.bodies()[-1]) if "user: " in each][:3] == [
        "user: first",
        "user: second",
        "user: again",
    ]


def test_an_unknown_slash_command_is_not_sent_to_the_model(chats: Chats) -> None:
    """An unknown slash command names the nearest one and sends nothing, and the session continues."""
    done = typed(chats.answers(DONE), "/plam\nWhat does it do?\n", "chat")
    assert (done.returncode, done.stdout) == (0, "It adds up prices.\n")
    assert "error[unknown-word]" in done.stderr
    assert "did you mean `/plan`?" in done.stderr
    assert len(chats.asked) == 1


# Chats about a run.


def test_why_did_it_fail_reaches_the_model_with_the_error(chats: Chats) -> None:
    """The model reads the failed step, its code and its message. The file of the run does not change."""
    project = chats.answers(call("get_workflow_summary", {}), text("`n/a` is no number."))
    run, file = failed_run(project)
    before = file.read_bytes()
    done = project.runops("chat", run, "-m", "Why did it fail?")
    assert (done.returncode, done.stdout) == (0, "`n/a` is no number.\n")
    assert "ok  get_workflow_summary" in done.stderr
    shown = text_of(chats.bodies()[1])
    assert "total" in shown
    assert "expression-failed" in shown
    assert "no number in 'n/a'" in shown
    assert file.read_bytes() == before


def test_the_first_request_has_the_error_under_the_injected_strategy(chats: Chats) -> None:
    """Under the strategy `injected` the first request already contains the error, without a tool call."""
    project = chats.answers(text("`n/a` is no number."))
    run, _file = failed_run(project)
    assert project.runops("chat", run, "--strategy", "injected", "-m", "Why did it fail?").returncode == 0
    assert "total" in text_of(chats.bodies()[0])
    assert "failed" in text_of(chats.bodies()[0])


def test_a_run_of_the_session_becomes_its_subject(chats: Chats) -> None:
    """`/run` starts a child run of the session and reports its outcome to the model. The session is then about that run, even after a resume."""
    project = chats.answers(text("It adds."), text("Not a number."), text("Again."))
    done = typed(project, "What?\n/run\nWhy?\n", "chat", "prices.yaml")
    assert (done.returncode, done.stdout) == (0, "It adds.\nNot a number.\n")
    (run,) = project.runs()
    assert "error  total" in done.stderr
    assert run["state"] == "failed"
    header = json.loads(
        (project.folder / ".runops" / "conversations" / f"{run['id']}.jsonl").read_text().splitlines()[0]
    )
    assert header["run"]["parent"] == session_of(done)
    messages = words_of(chats.bodies()[1])
    event = next(each for each in messages if "/run" in each)
    assert run["id"] in event
    assert "failed at total (expression-failed)" in event
    assert messages.index(event) < messages.index("user: Why?")
    assert f"run {run['id']}" in text_of(chats.bodies()[1])
    done = project.runops("chat", "--resume", "last", "-m", "And now?")
    assert f"run {run['id']}" in done.stderr.splitlines()[0]


def test_run_takes_inputs_like_the_command(chats: Chats) -> None:
    """`/run -i NAME=VALUE` sets an input. An unknown input is reported, and no run starts."""
    project = chats.answers()
    done = typed(project, "/run prices.yaml -i 'prices=1 2'\n/run prices.yaml -i price=1\n", "chat")
    assert "error[unknown-input]" in done.stderr
    (run,) = project.runs()
    assert run["state"] == "passed"


def test_resume_continues_the_run(chats: Chats) -> None:
    """`/resume` attempts the failed step again, in the same run."""
    project = chats.answers()
    run, file = failed_run(project)
    done = typed(project, "/resume\n", "chat", run)
    assert "FAILED total" in done.stderr
    assert [each["id"] for each in project.runs()] == [run]
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    calls = [each["path"] for each in entries if each["kind"] == "call"]
    assert calls == ["parts", "total", "total"]


# Saved and forked sessions.


def test_save_writes_the_conversation(chats: Chats) -> None:
    """`/save` writes messages and answers as Markdown, to the given file or a default one."""
    project = chats.answers(DONE)
    done = typed(project, "What does it do?\n/save notes.md\n/save\n", "chat", "prices.yaml")
    saved = (project.folder / "notes.md").read_text()
    assert "What does it do?" in saved
    assert "It adds up prices." in saved
    assert (project.folder / f"session-{session_of(done)}.md").read_text() == saved
    assert typed(project, "/save nowhere/notes.md\n", "chat").returncode == 2


def test_a_fork_leaves_its_parent_unchanged(chats: Chats) -> None:
    """`/fork` and `--fork` start from the messages so far. The file of the parent does not change, and the parent continues on its own."""
    project = chats.answers(text("One."), text("Two."), text("Three."), text("Four."))
    done = typed(project, "first\n/fork\nsecond\n", "chat")
    fork = session_of(done)
    parent = re.search(r"forked from (\w+)", done.stderr)
    assert parent is not None
    assert fork != parent[1]
    file = project.folder / ".runops" / "conversations" / f"{parent[1]}.jsonl"
    before = file.read_bytes()
    assert words_of(chats.bodies()[1])[:3] == ["user: first", "assistant: One.", "user: second"]
    assert project.runops("chat", "--fork", parent[1], "-m", "third").returncode == 0
    assert file.read_bytes() == before
    assert words_of(chats.bodies()[2])[:3] == ["user: first", "assistant: One.", "user: third"]
    assert project.runops("chat", "--resume", parent[1], "-m", "fourth").returncode == 0
    assert words_of(chats.bodies()[3])[:3] == ["user: first", "assistant: One.", "user: fourth"]


def test_a_resumed_session_keeps_its_mode_and_window(chats: Chats) -> None:
    """Mode and window settings persist when the session resumes, and a flag of the resume overrides them."""
    project = chats.answers(*[text("Yes.")] * 3)
    typed(project, "/mode agent\n/window max-messages 7\nfirst\n", "chat", "--strategy", "clean")
    done = typed(project, "/mode\n/window max-messages\n/help\n", "chat", "--resume", "last", "--mode", "run")
    assert done.stdout.startswith("run\n")
    shown = json.loads(project.runops("chat", "--resume", "last", "-m", "second", "--json").stdout)
    assert shown["mode"] == "run"
    before, after = chats.bodies()
    assert before["instructions"] != after["instructions"]
    assert before["tools"] == after["tools"]
    log = next((project.folder / ".runops" / "conversations").glob("*.jsonl")).read_text()
    kept = [json.loads(line) for line in log.splitlines() if '"version"' in line and '"of"' in line]
    assert [(each["of"], each["name"], each["value"]) for each in kept] == [
        ("window", "strategy", "clean"),
        ("mode", "", "agent"),
        ("window", "max_messages", 7),
        ("mode", "", "run"),
    ]


def test_slash_commands_print_the_session_state(chats: Chats) -> None:
    """`/plan`, `/vars`, `/cost` and `/window` print the session state, or say that there is none."""
    project = chats.answers(
        call("set_variable", {"name": "currency", "value": '"EUR"', "reason": "the file says so"}), text("Kept.")
    )
    done = typed(project, "/plan\n/vars\n/cost\nKeep it.\n/vars\n/cost\n/window\n", "chat", "--mode", "agent")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[:5] == ["(no plan)", "(no variables)", "nothing was asked yet", "Kept.", 'currency = "EUR"']
    assert lines[5].startswith("all  2 requests")
    assert "of 180,000 tokens" in done.stdout


# Interrupted answers.


def test_continue_resumes_from_the_partial_text(chats: Chats) -> None:
    """An answer that breaks off at every attempt is kept with its reason. The next message continues from it, and the session exits 0."""
    project = chats.answers(*[cut("The run ")] * 5, CONTINUE, **{hasty.WAIT: "0.01"})
    done = typed(project, "Why?\ncontinue\n", "chat", seconds=120)
    assert (done.returncode, done.stdout) == (0, "failed at the step `total`.\n")
    assert "error[model-stream-broken]" in done.stderr
    words = words_of(chats.bodies()[-1])
    assert words[0] == "user: Why?"
    assert words[1].startswith("assistant: The run ")
    assert "LLM_ERROR" in words[1]
    assert words[2] == "user: continue"


def test_a_message_without_an_answer_exits_1(chats: Chats) -> None:
    """A message without an answer exits 1, with the command to continue."""
    done = chats.answers(scripted_model.refusal()).runops("chat", "-m", "Why?")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"runops chat --resume {session_of(done)} -m continue" in done.stderr


def test_a_killed_session_resumes_where_it_stopped(chats: Chats) -> None:
    """A session killed during a request loses no message: the resume asks again, then sends the next message."""
    gate = threading.Event()
    project = chats.answers(text("One."), text("never").held(gate), text("Two."), text("Three."))
    with project.start("chat", asks=True) as process:
        assert process.stdin is not None
        process.stdin.write("first\nsecond\n")
        process.stdin.flush()
        assert chats.server is not None
        chats.server.wait(2)
        process.send_signal(signal.SIGKILL)
        out, _err = process.communicate(timeout=30)
    gate.set()
    assert out == "One.\n"
    done = project.runops("chat", "--resume", "last", "-m", "third")
    assert (done.returncode, done.stdout) == (0, "Two.\nThree.\n")
    assert words_of(chats.bodies()[3])[:5] == [
        "user: first",
        "assistant: One.",
        "user: second",
        "assistant: Two.",
        "user: third",
    ]


def test_an_owned_session_is_refused_to_another_process(chats: Chats) -> None:
    """A session that another process owns is refused with exit 1."""
    gate = threading.Event()
    project = chats.answers(text("One.").held(gate))
    with project.start("chat", "-m", "first") as process:
        assert chats.server is not None
        chats.server.wait(1)
        done = project.runops("chat", "--resume", "last", "-m", "second")
        assert done.returncode == 1
        assert "error[run-held]" in done.stderr
        gate.set()
        assert process.communicate(timeout=30)[0] == "One.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_session_without_a_prompt(number: signal.Signals, code: int, chats: Chats) -> None:
    """A signal ends the session without a traceback, and prints the command to continue."""
    gate = threading.Event()
    project = chats.answers(text("One.").held(gate))
    with project.start("chat", "-m", "first") as process:
        assert chats.server is not None
        chats.server.wait(1)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    gate.set()
    assert (process.returncode, out) == (code, ""), err
    assert re.search(r"interrupted\n  again  runops chat --resume \w+\n$", err)
    assert "Traceback" not in err


# On a terminal.


def test_on_a_terminal_one_ctrl_c_stops_only_the_answer(chats: Chats) -> None:
    """Ctrl-C stops only the answer, and the next message is answered. Ctrl-D at the prompt exits 0."""
    gate = threading.Event()
    project = chats.answers(text("never").held(gate), text("Two."))
    with project.terminal("chat") as terminal:
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press("first\r")
        assert chats.server is not None
        chats.server.wait(1)
        terminal.press("\x03")
        terminal.wait_for(lambda: "the session continues" in terminal.text)
        gate.set()
        terminal.press("second\r")
        terminal.wait_for(lambda: "Two." in terminal.text and terminal.text.endswith(">"))
        assert "window" in terminal.text
        terminal.press("\x04")
        assert terminal.wait() == 0
        assert "again  runops chat --resume" in terminal.everything
        assert "Traceback" not in terminal.everything


def interrupt(terminal: Terminal) -> None:
    """Press Ctrl-C at the prompt until Python reacts: it misses one that arrives just before it waits for a key."""
    heard = terminal.everything.count("Ctrl-C again")
    for _try in range(10):
        terminal.press("\x03")
        with contextlib.suppress(AssertionError):
            terminal.wait_for(
                lambda: "interrupted" in terminal.everything or terminal.everything.count("Ctrl-C again") > heard,
                4,
            )
            return
    raise AssertionError(f"Ctrl-C is not heard; the screen:\n{terminal.everything}")


def test_at_the_prompt_a_second_ctrl_c_ends_the_session(chats: Chats) -> None:
    """The first Ctrl-C discards the input and says how to end. A message in between makes the next one a first one again."""
    project = chats.answers(DONE)
    with project.terminal("chat") as terminal:
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press("half a wo")
        terminal.wait_for(lambda: "half a wo" in terminal.text)
        interrupt(terminal)
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press("What does it do?\r")
        terminal.wait_for(lambda: "It adds up prices." in terminal.text and terminal.text.endswith(">"))
        assert words_of(chats.bodies()[0])[0] == "user: What does it do?"
        interrupt(terminal)
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        interrupt(terminal)
        assert terminal.wait() == 130
        assert "again  runops chat --resume" in terminal.everything


def test_on_a_terminal_an_answer_is_shown_while_it_arrives(chats: Chats) -> None:
    """The beginning of an answer that stalls is on the screen at once, except for a tail in which a secret may begin."""
    project = chats.answers(
        scripted_model.stall(f"The run failed at `total`: {'a number was wanted there, ' * 4}"),
        RUNOPS_MODEL_TIMEOUT="60",
    )
    with project.terminal("chat") as terminal:
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press("Why?\r")
        terminal.wait_for(lambda: "The run failed at `total`" in terminal.text)
        terminal.press("\x03")
        terminal.wait_for(lambda: "the session continues" in terminal.text)
        terminal.press("/quit\r")
        assert terminal.wait() == 0


def test_a_chat_that_builds_asks_for_the_reset_as_a_build_does(chats: Chats) -> None:
    """In mode agent, for a site on this machine, the reset is asked for before the first message is sent, also if the mode was changed; without a person that none is known is said once."""
    local = ("--mode", "agent", "--url", "http://127.0.0.1:9/")
    project = chats.answers(text("One."), text("Two."), text("Three."), text("Four."))
    with project.terminal("chat", *local[2:], columns=150) as terminal:
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press("/mode agent\r")
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press("Look.\r")
        terminal.wait_for(lambda: "Which command puts the site's data back" in terminal.text)
        assert chats.server is not None
        assert chats.bodies() == []
        terminal.press("touch put_back\r")
        terminal.wait_for(lambda: "One." in terminal.text and terminal.text.endswith(">"))
        terminal.press("Again.\r")
        terminal.wait_for(lambda: "Two." in terminal.text and terminal.text.endswith(">"))
        assert terminal.everything.count("Which command puts") == 1
        terminal.press("\x04")
        assert terminal.wait() == 0
    asked = json.dumps(chats.bodies())
    assert "a reset puts the site's data back" in asked
    assert "put_back" not in asked
    done = typed(project, "Look.\nAgain.\n", "chat", *local, "--effects", "ask")
    assert (done.returncode, done.stderr.count("no reset: ")) == (0, 1), done.stderr
