"""One session to talk and to build: row 000-21."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing.scripted_model import call, text
from tests.chats import Chats, session_of, text_of, typed, words_of

pytestmark = pytest.mark.drawn(share=0.4, of="build and talk")

EDIT = call(
    "update_node",
    {
        "id": "total",
        "yaml": "{id: total, type: transform, expr: \"{{ parts | reject('eq', 'n/a') | map('number') | sum }}\"}",
        "reason": "n/a is no price",
    },
)
TRY = call(
    "execute_nodes",
    {"nodes": "all", "mode": None, "from": None, "item": None, "reason": "to see what comes of it"},
)
FINISH = call(
    "finish", {"done": True, "summary": "Adds up what is a price.", "unproved": None, "reason": "all is proved"}
)


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    given = Chats(tmp_path)
    yield given
    given.close()


def test_000_21_a_chat_about_a_file_builds_on_it(chats: Chats) -> None:
    """In mode agent the draft begins as the file; edits, trials, proof and the saved file are of one session, and the talk continues."""
    project = chats.answers(EDIT, TRY, FINISH, text("It leaves out n/a."))
    done = project.here("chat", "prices.yaml", "--mode", "agent", "-m", "Leave out what is no number.", "--json")
    assert done.returncode == 0, done.stderr
    saved = (project.folder / "prices.yaml").read_text()
    assert "reject" in saved
    assert project.here("run", "prices.yaml", "--quiet").returncode == 0
    again = project.here("chat", "--resume", "last", "-m", "What does it do?", "-q")
    assert (again.stdout, again.returncode) == ("It leaves out n/a.\n", 0)
    last = words_of(chats.bodies()[-1])
    assert "proved and saved" in last[-1]


BEGIN = call(
    "create_nodes",
    {
        "yaml": "inputs: {n: {type: integer, default: 4}}\noutput: '{{ twice }}'\nnodes:\n  - {id: twice, type: transform, expr: '{{ inputs.n * 2 }}'}\n",
        "after": None,
        "dry_run": None,
        "reason": "the first nodes",
    },
)
PROVE = call(
    "finish",
    {
        "done": True,
        "summary": "Doubles n.",
        "unproved": "output: it is made of the input alone",
        "reason": "it is done",
    },
)


def test_000_21_the_message_is_the_goal_of_a_new_workflow(chats: Chats) -> None:
    """Without a goal the person's message is it: it names the file and stands in its head; what was built is told to the person and in `--json`."""
    project = chats.answers(BEGIN + PROVE)
    done = project.here("chat", "--mode", "agent", "-m", "Double a number.", "--json")
    ending = json.loads(done.stdout)
    assert (ending["exit"], ending["mode"]) == (0, "agent"), done.stderr
    built = ending["built"]
    assert (built["goal"], built["proved"], built["changed"]) == ("Double a number.", built["finish"]["proved"], None)
    file = Path(built["file"])
    assert (file.name, built["output"]) == ("double-a-number.yaml", 8)
    assert "description: Double a number." in file.read_text()
    assert ending["words"][0]["answer"] == "It is proved and saved as it is: double-a-number.yaml"
    assert "done  proved" in done.stderr


def test_000_21_a_build_is_talked_about_and_built_further(chats: Chats) -> None:
    """A build that has ended continues by `chat --resume`, is built further, and then by `build --resume`, all in one session and one file."""
    more = call(
        "update_node",
        {"id": "twice", "yaml": "{id: twice, type: transform, expr: '{{ inputs.n * 3 }}'}", "reason": "thrice"},
    )
    project = chats.answers(BEGIN + PROVE, text("It doubles n."), more, PROVE, text("Hm."), PROVE)
    first = project.here("build", "Double a number.", "--json", "--runs", "1")
    assert first.returncode == 0, first.stderr
    session, file = (json.loads(first.stdout)[name] for name in ("session", "file"))
    talked = project.here("chat", "--resume", session, "-m", "What does it do?")
    assert (talked.returncode, talked.stdout) == (0, "It doubles n.\n"), talked.stderr
    assert "proved and saved" in talked.stderr.splitlines()[0]
    assert words_of(chats.bodies()[1])[0] == "user: Double a number."
    changed = project.here("chat", "--resume", session, "-m", "Three times, please.")
    assert changed.returncode == 0, changed.stderr
    assert "n * 3" in Path(file).read_text()
    again = project.here("build", "--resume", session, "Is it right?", "--json")
    assert json.loads(again.stdout)["file"] == file, again.stderr
    assert [each["name"] for each in chats.bodies()[0]["tools"]] == [
        each["name"] for each in chats.bodies()[-1]["tools"]
    ]


def test_000_21_the_tools_of_a_build_are_refused_in_another_mode(chats: Chats) -> None:
    """They are offered from the first moment in mode agent on, and then always; in modes chat and run their calls are refused."""
    project = chats.answers(text("Hello."), BEGIN, text("I may not."), text("Ready."))
    done = typed(project, "Hi.\n/mode agent\n/mode chat\nDouble it.\n/mode run\nAnd now?\n", "chat")
    assert done.returncode == 0, done.stderr
    offered = [[each["name"] for each in body["tools"]] for body in chats.bodies()]
    assert ["create_nodes" in each for each in offered] == [False, True, True, True]
    assert offered[1] == offered[2] == offered[3]
    assert "tool-not-in-mode" in words_of(chats.bodies()[2])[-2]
    assert "/mode agent" in words_of(chats.bodies()[2])[-2]


def test_000_21_a_goal_can_be_given_in_the_session(chats: Chats) -> None:
    """`/goal` says the goal with its site, inputs and file; it stands in the instructions, and another message does not replace it."""
    project = chats.answers(BEGIN, PROVE)
    words = "/goal Double what is given. -i n=5 --save out.yaml\n/goal\nBegin.\n"
    done = typed(project, words, "chat", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    assert "Goal: Double what is given." in done.stdout
    assert "Input n: 5" in chats.bodies()[0]["instructions"]
    text_of_file = (project.folder / "out.yaml").read_text()
    assert "description: Double what is given." in text_of_file


def test_a_goal_with_a_new_file_begins_empty_after_a_run_of_another(chats: Chats) -> None:
    """`/goal … --save FILE` of a file that is not there begins an empty draft, whatever ran last; the model is told so before."""
    project = chats.answers(BEGIN, text("Begun."))
    words = "/run prices.yaml -i prices=1\n/goal Double what is given. --save out.yaml\nBegin.\n"
    done = typed(project, words, "chat", "prices.yaml", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    first, last = (words_of(each) for each in (chats.bodies()[0], chats.bodies()[-1]))
    assert "build: Double what is given.; no nodes yet; run " in first[-1]
    output = next(each for each in reversed(last) if each.startswith("output: "))
    assert "version 1\n" in output
    assert "1 nodes in all" in output
    assert "began as" not in "\n".join(last)


def test_an_untouched_draft_of_another_file_is_begun_anew(chats: Chats) -> None:
    """Without `--save` the draft begins as the last run's file; the tool and the summary say so, and `create_nodes` with a head replaces it."""
    add = call(
        "create_nodes",
        {
            "yaml": "- {id: more, type: transform, expr: '{{ 1 }}'}\n",
            "after": None,
            "dry_run": None,
            "reason": "one more",
        },
    )
    gone = call("delete_nodes", {"ids": ["parts", "total"], "reason": "a new one"})
    project = chats.answers(gone, BEGIN, add, text("Begun."))
    words = "/run prices.yaml -i prices=1\n/goal Double what is given.\nBegin.\n"
    done = typed(project, words, "chat", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    second, third, fourth = (words_of(each) for each in chats.bodies()[1:4])
    assert "`create_nodes` first" not in second[-2]
    assert "add the new nodes first, `create_nodes`, then delete these" in second[-2]
    assert (
        "The draft began as the workflow prices.yaml as it is; for a new workflow begin it anew: `create_nodes`"
        in second[-1]
    )
    assert "version 2\n" in third[-2]
    assert "1 nodes in all" in third[-2]
    assert "begin it anew" not in third[-1]
    assert "2 nodes in all" in fourth[-2]
    shown = project.here("show", session_of(done)).stdout
    assert "version 2  by the model: the first nodes" in shown
    assert "version 1  from the file: the workflow prices.yaml as it is" in shown
    assert shown.rstrip().endswith(f"again  runops chat --resume {session_of(done)}")


def test_000_21_the_draft_stays_what_is_shown(chats: Chats) -> None:
    """After a run of another file the tools that read the workflow still show the draft, and the title has both."""
    look = call("get_workflow_nodes", {"which": "all", "type": None})
    project = chats.answers(BEGIN, text("Begun."), look, text("So."))
    done = typed(project, "Double a number.\n/run prices.yaml -i prices=1\nWhat have you?\n", "chat", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    last = words_of(chats.bodies()[-1])
    assert "twice" in next(each for each in reversed(last) if each.startswith("output: "))
    assert "Double a number." in last[-1]
    assert "Add up the prices" in last[-1]


def test_000_21_a_file_that_was_changed_meanwhile_is_kept(chats: Chats) -> None:
    """`finish` writes over the file as which the draft began, and never over one that somebody has changed since."""
    project = chats.answers(EDIT, text("Edited."), FINISH, text("I cannot save it."))
    done = project.here("chat", "prices.yaml", "--mode", "agent", "-m", "Leave out what is no number.")
    assert done.returncode == 0, done.stderr
    mine = (project.folder / "prices.yaml").read_text() + "# mine\n"
    project.write("prices.yaml", mine)
    done = project.here("chat", "--resume", "last", "-m", "Save it.")
    assert done.returncode == 0, done.stderr
    assert (project.folder / "prices.yaml").read_text() == mine
    assert "is there already" in str(words_of(chats.bodies()[-1]))


def test_a_variable_is_the_value_of_an_input_in_the_next_run(chats: Chats) -> None:
    """A variable with the name of an input is its value in `/run`, `-i` replaces it, and it is said which came from where."""
    keep = call("set_variable", {"name": "n", "value": "7", "reason": "asked"})
    project = chats.answers(keep, text("Kept."), text("Seen."))
    project.write(
        "two.yaml",
        "version: 1\nname: Two\ninputs: {n: {type: integer, default: 1}, m: {type: integer, default: 1}}\nnodes:\n  - {id: a, type: transform, expr: '{{ inputs.n * inputs.m }}'}\noutput: '{{ a }}'\n",
    )
    done = typed(project, "Take 7.\n/run\n/run -i m=3\n/run -i n=2\nAnd?\n", "chat", "two.yaml")
    assert done.returncode == 0, done.stderr
    assert "--  inputs: n = 7 (variable of the session)" in done.stderr
    assert '--  inputs: m = "3", n = 7 (variable of the session)' in done.stderr
    runs = project.runs()
    inputs = [project.show(each["id"])["inputs"] for each in runs]
    assert inputs == [{"n": 7, "m": 1}, {"n": 7, "m": 3}, {"n": 2, "m": 1}]
    told = text_of(chats.bodies()[-1])
    assert "/run -i m=3   (n: the session's variable)" in told


def test_runs_of_tools_are_listed_with_their_session(chats: Chats) -> None:
    """`runops runs` lists what a person ran, `--all` also what tools of a session ran, each with its call; `last` is none of those."""
    project = chats.answers(EDIT, TRY, text("Tried."))
    done = typed(project, "/run -i prices=4\nLeave out what is no number.\n", "chat", "prices.yaml", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    listed = json.loads(project.here("runs", "--json").stdout)["runs"]
    every = json.loads(project.here("runs", "--all", "--json").stdout)["runs"]
    assert (len(listed), len(every)) == (1, 2)
    assert [each["tool"] for each in every] == [None, next(each["tool"] for each in every if each["tool"])]
    assert every[1]["tool"].endswith("_execute_nodes")
    assert json.loads(project.here("show", "last", "--json").stdout)["run"] == listed[0]["id"]


def test_000_21_a_question_of_a_talk_that_builds_waits_for_its_answer(chats: Chats) -> None:
    """Without a terminal the question is printed and the exit code is 4; the answer continues the same session, as a build or as a chat."""
    ask = call("ask_user", {"question": "Which number?", "choices": ["two", "three"]})
    project = chats.answers(ask, BEGIN + PROVE, text("Three."))
    done = project.here("chat", "--mode", "agent", "-m", "Multiply a number.", "--json")
    ending = json.loads(done.stdout)
    assert (done.returncode, ending["status"]) == (4, "paused")
    assert "Which number?" in done.stderr
    session = ending["session"]
    answered = project.here("build", "--resume", session, "--answer", "2", "--json")
    assert json.loads(answered.stdout)["status"] == "done", answered.stderr
    assert "output: three" in words_of(chats.bodies()[1])
    talked = project.here("chat", "--resume", session, "-m", "Which was it?", "--json")
    built = json.loads(talked.stdout)["built"]
    assert [each["answer"] for each in built["questions"]] == ["three"]


def test_000_21_flags_say_how_a_talk_may_build(chats: Chats) -> None:
    """A chat takes the site, inputs, secrets and effects of a build, at its start and later; a session cannot use what it was not given."""
    more = call("update_node", {"id": "workflow", "yaml": "secrets: [SHOP_KEY]", "reason": "it signs in"})
    project = chats.answers(
        BEGIN, text("Begun."), more, text("Not given."), more, text("Taken."), SHOP_KEY="a-very-secret-key"
    )
    start = ("--url", "http://127.0.0.1:9/", "-i", "n=5", "--effects", "hold", "--runs", "1")
    done = project.here("chat", "--mode", "agent", *start, "-m", "Double a number.")
    assert done.returncode == 0, done.stderr
    told = chats.bodies()[0]["instructions"]
    assert "Site: http://127.0.0.1:9/" in told
    assert "Input n: 5" in told
    assert "the whole draft passes once" in told
    project.here("chat", "--resume", "last", "-m", "Sign in.")
    assert "secret-not-given" in str(words_of(chats.bodies()[3]))
    assert "/goal --secret NAME" in str(words_of(chats.bodies()[3]))
    project.here("chat", "--resume", "last", "--secret", "SHOP_KEY", "-m", "Sign in now.")
    assert "SHOP_KEY" in chats.bodies()[4]["instructions"]
    assert "secrets" in words_of(chats.bodies()[5])[-2]
    assert "a-very-secret-key" not in "".join(map(text_of, chats.bodies()))


def test_000_21_a_session_whose_file_is_gone_builds_anew(chats: Chats) -> None:
    """Where the file that a session is about is gone, the first nodes begin a draft, which is saved in its place."""
    project = chats.answers(text("It adds."), BEGIN + PROVE)
    assert project.here("chat", "prices.yaml", "-m", "What is it?").returncode == 0
    (project.folder / "prices.yaml").unlink()
    done = project.here("chat", "--resume", "last", "--mode", "agent", "-m", "Double a number.")
    assert (done.returncode, done.stdout) == (0, "It is proved and saved as it is: prices.yaml\n"), done.stderr
    assert "twice" in (project.folder / "prices.yaml").read_text()
