"""Syncthing without a network: ten folders and five devices, some with almost the same names."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    name="syncthing",
    site="app",
    goal="Sign in as ada, share the given folder with the given device, and tell me the ID of that folder.",
    secrets=("SYNCTHING_PASSWORD",),
    inputs={"folder": "Photos 2025", "device": "office-nas"},
)
SECRETS = {"SYNCTHING_PASSWORD": "copper-orchard"}

_KEY = "builds-by-hand-0001"
_ALONE = {
    "listenAddress": "tcp://127.0.0.1:0",
    "globalAnnounceEnabled": "false",
    "localAnnounceEnabled": "false",
    "relaysEnabled": "false",
    "natEnabled": "false",
    "crashReportingEnabled": "false",
    "releasesURL": "",
    "autoUpgradeIntervalH": "0",
    "urAccepted": "-1",
    "urSeen": "3",
    "startBrowser": "false",
    "setLowPriority": "false",
    "unackedNotificationID": "",
}
_DEVICES = ("office-nas", "office-nas-backup", "kofi-laptop", "kofi-laptop-old", "meeting-room")
_FOLDERS = {
    "Accounts": ("acnts-4kq7m", "office-nas office-nas-backup"),
    "Alder project": ("hw3dn-9xrtc", "office-nas kofi-laptop"),
    "Alder project archive": ("q6v2z-mfk8u", "office-nas-backup"),
    "Contracts": ("cn5tr-7ypwl", "office-nas office-nas-backup kofi-laptop"),
    "Music": ("mx8sc-2jhda", "kofi-laptop-old"),
    "Photos 2024": ("p7c4e-bu9ns", "office-nas office-nas-backup"),
    "Photos 2025": ("zr9mk-t3w6a", "office-nas-backup kofi-laptop"),
    "Photos 2025 raw": ("ge2xh-v5q8j", "kofi-laptop"),
    "Slides": ("sl6pd-w4nfy", "meeting-room"),
    "Templates": ("tm3vb-k8zgr", "meeting-room kofi-laptop"),
}
"""Label, ID, and the devices that have it."""


def install(home: Path) -> None:
    programs.debian_packages("syncthing", program="syncthing")
    if not (home / "config").exists():
        part = home / "config.part"
        shutil.rmtree(part, ignore_errors=True)
        account = ("--gui-user", "ada", "--gui-password", SECRETS["SYNCTHING_PASSWORD"])
        programs.ran(["syncthing", "generate", "--home", str(part), "--no-default-folder", *account])
        tree = ET.parse(part / "config.xml")
        for name, value in _ALONE.items():
            for option in tree.findall(f"options/{name}"):
                option.text = value
        tree.write(part / "config.xml")
        part.rename(home / "config")


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    gui = ["--gui-address", f"http://127.0.0.1:{port}", "--gui-apikey", _KEY, "--no-browser", "--no-upgrade"]
    command = ["syncthing", "serve", "--home", str(home / "config"), "--no-restart", *gui]
    process = programs.started(command, home / "log", STNODEFAULTFOLDER="1")
    programs.until_it_answers(f"http://127.0.0.1:{port}/")
    if not (home / "seed.json").exists():
        (home / "seed.json").write_text(json.dumps(_filled(home, _asked(port, "config"))))
    return [process]


def reset(home: Path, port: int) -> None:
    _asked(port, "config", json.loads((home / "seed.json").read_text()))


def state(home: Path, port: int) -> Json:
    config = _asked(port, "config")
    names = {each["deviceID"]: each["name"] for each in config["devices"]}
    for folder in config["folders"]:
        folder["devices"] = sorted(names[each["deviceID"]] for each in folder["devices"])
    return {
        "folders": {each["id"]: each for each in config["folders"]},
        "devices": {each["name"]: each for each in config["devices"]},
        "options": config["options"],
        "defaults": config["defaults"],
    }


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    wanted = json.loads(json.dumps(before))
    (folder,) = (each for each in wanted["folders"].values() if each["label"] == inputs["folder"])
    folder["devices"] = sorted([*folder["devices"], inputs["device"]])
    if wrong := list(_differences(wanted, after)):
        yield f"it was to share the folder, and nothing else: {wrong}"
    if not any(folder["id"] in each for each in programs.texts(output)):
        yield f"the folder has the ID {folder['id']}, and it says {output}"


def _differences(wanted: Json, got: Json) -> Iterator[Json]:
    if isinstance(wanted, dict) and isinstance(got, dict):
        for name in wanted.keys() | got.keys():
            for each in _differences(wanted.get(name), got.get(name)):
                yield {name: each}
    elif wanted != got:
        yield {"wanted": wanted, "got": got}


def _asked(port: int, path: str, body: Json = None) -> Json:
    method = "GET" if body is None else "PUT"
    return programs.asked(f"http://127.0.0.1:{port}/rest/{path}", body, method, {"X-API-Key": _KEY})


def _filled(home: Path, config: Json) -> Json:
    (own,) = config["devices"]
    own["name"] = "ada-desktop"
    ids: dict[str, str] = {}
    for name in _DEVICES:
        programs.ran(["syncthing", "generate", "--home", str(home / "devices" / name), "--no-default-folder"])
        ids[name] = programs.ran(["syncthing", "--home", str(home / "devices" / name), "--device-id"]).strip()
    defaults = config["defaults"]
    config["devices"] = [own, *({**defaults["device"], "deviceID": ids[name], "name": name} for name in _DEVICES)]
    config["folders"] = []
    for label, (number, names) in _FOLDERS.items():
        path = home / "folders" / label
        path.mkdir(parents=True, exist_ok=True)
        (path / "notes.txt").write_text(f"{label}\n" * 40)
        devices = [{"deviceID": each} for each in (own["deviceID"], *(ids[name] for name in names.split()))]
        folder = {**defaults["folder"], "id": number, "label": label, "path": str(path), "devices": devices}
        config["folders"].append(folder)
    return config
