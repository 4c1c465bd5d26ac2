"""OctoPrint: a workroom's printer, a virtual one that is connected, with the files that are printed there."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    "octoprint",
    "app",
    "Sign in as operator, print the given file and wait until it is done; tell me the state of the printer then and how many seconds the print took.",
    secrets=("OCTOPRINT_PASSWORD",),
    inputs={"file": "bracket_left_v2.gcode"},
)
SECRETS = {"OCTOPRINT_PASSWORD": "Copper-Meadow-31"}
KEY = "0123456789ABCDEF0123456789ABCDEF"
"""The key of the interface, for ``reset`` and ``state``."""

FILES = {
    f"{name}.gcode": 5 + place % 5
    for place, name in enumerate(
        (
            *("bracket_left", "bracket_left_v2", "bracket_left_v2b", "bracket_right", "bracket_right_v2", "cable_clip"),
            *("cable_clip_wide", "door_stop", "drawer_knob", "drawer_knob_small", "fan_duct", "fan_duct_v2", "hook"),
            *("hook_double", "lens_cap_52", "lens_cap_58", "plant_label", "spacer_10", "spacer_12", "tray_insert"),
        )
    )
}
"""The files, with the seconds that their print waits."""
SPREAD_SECONDS = 2
READY = "Operational"


def install(home: Path) -> None:
    """Install OctoPrint."""
    programs.python_packages(home, "OctoPrint==1.11.8")


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    """Start it in a new folder, with its first-run wizard done and nothing that asks the internet."""
    folder = home / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    off = ("announcements", "softwareupdate", "tracking", "errortracking", "discovery", "achievements", "pluginmanager")
    settings = {
        "api": {"key": KEY},
        "server": {"firstRun": False, "onlineCheck": {"enabled": False}, "pluginBlacklist": {"enabled": False}},
        "serial": {"port": "VIRTUAL", "autoconnect": True},
        "gcodeAnalysis": {"runAt": "never"},
        "webcam": {"webcamEnabled": False, "timelapseEnabled": False},
        "plugins": {"virtual_printer": {"enabled": True}, "_disabled": off},
    }
    (folder / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML.
    program = str(programs.python_packages(home, "OctoPrint==1.11.8") / "octoprint")
    password = SECRETS["OCTOPRINT_PASSWORD"]
    programs.ran([program, "-b", str(folder), "user", "add", "operator", "--password", password, "-g", "users"])
    serve = [program, "-b", str(folder), "serve", "--host", "127.0.0.1", "--port", str(port), "--iknowwhatimdoing"]
    process = programs.started(serve, home / "octoprint.log")
    try:
        _until_ready(port, programs.READY_SECONDS)
    except BaseException:
        programs.ended([process])
        raise
    return [process]


def reset(home: Path, port: int) -> None:
    """Cancel what is printed, and upload the files anew that were printed or are not as they were."""
    del home
    now = _asked(port, "job")["state"]
    with contextlib.suppress(urllib.error.HTTPError):  # For example, it is about to finish.
        if now.startswith(("Offline", "Error")):
            _asked(port, "connection", {"command": "connect", "port": "VIRTUAL"})
        elif now != READY:
            _asked(port, "job", {"command": "cancel"})
    _until_ready(port, 30)
    there = {each["path"]: each for each in _asked(port, "files")["files"]}
    selected = _asked(port, "job")["job"]["file"]["path"]
    if selected:
        _asked(port, f"files/local/{selected}", {"command": "unselect"})
    for name, file in there.items():
        if name not in FILES or "prints" in file:
            _asked(port, f"files/local/{name}", method="DELETE")
    for name, seconds in FILES.items():
        if name not in there or "prints" in there[name]:
            _uploaded(port, name, seconds)


def state(home: Path, port: int) -> Json:
    """The state of the printer, and the prints of every file."""
    del home
    return {
        "printer": _asked(port, "job")["state"],
        "files": {each["path"]: each.get("prints") for each in _asked(port, "files")["files"]},
    }


def judged(before: Any, after: Any, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    """One successful print more, of that file only; the state and the seconds said."""
    name = str(inputs["file"])
    for other in sorted({*before["files"], *after["files"]} - {name}):
        if before["files"].get(other, 0) != after["files"].get(other, 0):
            yield f"{other} changed: {after['files'].get(other)}"
    none: Any = {"success": 0, "failure": 0}
    old, prints = before["files"].get(name) or none, after["files"].get(name) or none
    if (prints["success"], prints["failure"]) != (old["success"] + 1, old["failure"]):
        yield f"the prints of {name} are {prints}, before it {old}"
        return
    said, took = programs.texts(output), prints["last"]["printTime"]
    if after["printer"] != READY or not any(READY in each for each in said):
        yield f"the printer is {after['printer']}, and it says {said}"
    if not any(abs(seconds - took) <= SPREAD_SECONDS for each in said for seconds in _seconds(each)):
        yield f"the print took {took:.1f} s, and it says {said}"


def _seconds(text: str) -> Iterator[float]:
    """The durations in a text: ``00:00:08`` or a number."""
    for hours, minutes, seconds in re.findall(r"(\d+):(\d\d):(\d\d)", text):
        yield int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    yield from map(float, re.findall(r"(?<![\d:.])\d+(?:\.\d+)?(?![\d:])", text))


def _asked(port: int, path: str, body: Any = None, method: str | None = None) -> Any:
    return programs.asked(f"http://127.0.0.1:{port}/api/{path}", body, method, {"X-Api-Key": KEY})


def _uploaded(port: int, name: str, seconds: int) -> None:
    gcode = "G28\n" + "G1 X10 Y10 E1\nG4 P250\nG1 X20 Y20 E1\nG4 P250\n" * (2 * seconds) + "M84\n"
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = f"--part\r\n{head}{gcode}\r\n--part--\r\n"
    headers = {"X-Api-Key": KEY, "Content-Type": "multipart/form-data; boundary=part"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/files/local", body.encode(), headers)
    urllib.request.urlopen(request, timeout=30).close()


def _until_ready(port: int, seconds: float) -> None:
    """Wait until the printer can print; while it starts, a small server answers with no HTTP at all."""
    end, now = time.monotonic() + seconds, ""
    while now != READY:
        if now and time.monotonic() > end:
            raise programs.Failed(f"the printer did not get ready within {seconds:.0f} s: {now}")
        time.sleep(0.25)
        try:
            now = _asked(port, "job")["state"]
        except (OSError, http.client.HTTPException, ValueError) as error:
            now = repr(error)
