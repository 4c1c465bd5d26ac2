"""Label Studio on SQLite: mails to a shop, a few of them labelled, and a training set with some of the same mails."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

_USER = "nora@example.org"
GOAL = Goal(
    name="labelstudio",
    site="app",
    goal=f"Sign in as {_USER}, find the task with the given text in the given project, give it the given label, and tell me the ID of that task.",
    secrets=("LABEL_STUDIO_PASSWORD",),
    inputs={"project": "Support mail", "text": "order 48231 arrived with a broken handle", "label": "Return"},
)
SECRETS = {"LABEL_STUDIO_PASSWORD": "teal-lantern"}

_TOKEN = "3f9c0d5e7a1b4c6d8e2f0a9b7c5d3e1f2a4b6c8d"
_CHOICES = ("Billing", "Delivery", "Return", "Product question", "Praise")
_CONFIG = f"""<View>
  <Text name="mail" value="$text"/>
  <Choices name="topic" toName="mail" choice="single" showInLine="true">
    {"".join(f'<Choice value="{each}"/>' for each in _CHOICES)}
  </Choices>
</View>"""
_MAILS = (
    ("Hello, the kettle from order {} arrived with a broken handle. What do I do now?", "Return"),
    ("Good morning, invoice {} was charged twice to my card.", "Billing"),
    ("My parcel for order {} has been on its way for nine days.", "Delivery"),
    ("Does the lamp in order {} take bulbs with a screw base?", "Product question"),
    ("Order {} came a day early and everything was packed with care. Thank you!", "Praise"),
    ("I would like to send order {} back, the jacket is too small.", "Return"),
    ("Please send me invoice {} again, made out to our company.", "Billing"),
    ("The driver left order {} with a neighbour whom I do not know.", "Delivery"),
    ("Can the table in order {} stand outside in winter?", "Product question"),
    ("Best chair I ever bought, order {} is worth each cent.", "Praise"),
    ("Two of the six glasses in order {} are missing.", "Delivery"),
    ("The discount code was not taken off order {}.", "Billing"),
    ("Order {} has the wrong colour: I asked for green and got grey.", "Return"),
    ("How long is the cable of the fan in order {}?", "Product question"),
    ("The address on order {} is wrong, may I still change it?", "Delivery"),
    ("I paid order {} by bank transfer, and you still say it is open.", "Billing"),
    ("Your colleague on the telephone sorted out order {} in a minute, wonderful.", "Praise"),
    ("The zip of the bag in order {} broke after a week.", "Return"),
    ("Is there a second shelf for the rack in order {}?", "Product question"),
    ("Tracking for order {} says delivered, but nothing is here.", "Delivery"),
)


def install(home: Path) -> None:
    """Also makes the database, which takes two minutes."""
    programs.python_packages(home, "label-studio==1.23.2")
    if not (home / "seed.sqlite3").exists():
        shutil.rmtree(home / "data", ignore_errors=True)
        (home / "data").mkdir()
        account = ["--username", _USER, "--password", SECRETS["LABEL_STUDIO_PASSWORD"], "--user-token", _TOKEN]
        programs.ran(
            _command(home, "init", "--quiet", *account, "--enable-legacy-api-token"), cwd=home, **_environment(home)
        )


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    command = _command(home, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port))
    process = programs.started(command, home / "log", cwd=home, **_environment(home))
    programs.until_it_answers(f"http://127.0.0.1:{port}/user/login/")
    if not (home / "seed.sqlite3").exists():
        _fill(port)
        _copied(_database(home), home / "seed.sqlite3")
    return [process]


def reset(home: Path, port: int) -> None:
    _copied(home / "seed.sqlite3", _database(home))


def state(home: Path, port: int) -> Json:
    tasks = "select t.id, p.title as project, t.data from task t join project p on p.id = t.project_id order by t.id"
    labels = "select id, task_id, result, was_cancelled from task_completion order by id"
    drafts = "select task_id, result from tasks_annotationdraft order by id"
    found = {
        name: programs.rows(_database(home), query)
        for name, query in (("tasks", tasks), ("annotations", labels), ("drafts", drafts))
    }
    for row in (*found["annotations"], *found["drafts"]):
        row["choices"] = [choice for each in json.loads(row.pop("result")) for choice in each["value"]["choices"]]
    for row in found["tasks"]:
        row["text"] = json.loads(row.pop("data"))["text"]
    return found


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    (task,) = (
        each["id"]
        for each in before["tasks"]
        if each["project"] == inputs["project"] and inputs["text"] in each["text"]
    )
    made = [each for each in after["annotations"] if each not in before["annotations"]]
    wanted = {"task_id": task, "was_cancelled": 0, "choices": [inputs["label"]]}
    if [{name: each[name] for name in wanted} for each in made] != [wanted]:
        yield f"{wanted} was to be made, and it made {made}"
    if lost := [each for each in before["annotations"] if each not in after["annotations"]]:
        yield f"these annotations were changed or deleted: {lost}"
    for name in ("tasks", "drafts"):
        if before[name] != after[name]:
            yield f"it changed the {name}: {[each for each in after[name] if each not in before[name]]}"
    if not any(str(task) in each.replace("#", " ").split() for each in programs.texts(output)):
        yield f"the task has the ID {task}, and it says {output}"


def _command(home: Path, *arguments: str) -> list[str]:
    return [str(home / "venv" / "bin" / "label-studio"), *arguments, "--data-dir", str(home / "data")]


def _environment(home: Path) -> dict[str, str]:
    """No calls to the outside."""
    off = {"COLLECT_ANALYTICS": "0", "LATEST_VERSION_CHECK": "0", "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": ""}
    data = {"BASE_DATA_DIR": str(home / "data"), **off}
    return {f"LABEL_STUDIO_{name}": value for name, value in data.items()}


def _database(home: Path) -> Path:
    return home / "data" / "label_studio.sqlite3"


def _fill(port: int) -> None:
    def asked(path: str, body: Json) -> Json:
        return programs.asked(f"http://127.0.0.1:{port}/api/{path}", body, headers={"Authorization": f"Token {_TOKEN}"})

    mails = [
        (text.format(48213 + 18 * half + 137 * at), label) for half in (0, 1) for at, (text, label) in enumerate(_MAILS)
    ]
    for title, some, labelled in (("Support mail, training set", mails[10:28], 18), ("Support mail", mails, 9)):
        project = asked("projects/", {"title": title, "label_config": _CONFIG, "show_collab_predictions": False})["id"]
        made = asked(f"projects/{project}/import?return_task_ids=true", [{"text": text} for text, _label in some])
        for task, (_text, label) in list(zip(made["task_ids"], some, strict=True))[:labelled]:
            choice = {"from_name": "topic", "to_name": "mail", "type": "choices", "value": {"choices": [label]}}
            asked(f"tasks/{task}/annotations/", {"result": [choice], "lead_time": 12.5})


def _copied(source: Path, target: Path) -> None:
    """Copy a database; one that is begun anew has its name only when it is whole."""
    part = target if target.exists() else target.with_suffix(".part")
    programs.copied(source, part)
    part.replace(target)
