"""Refuses switches of Chromium that differ from those of the installed Playwright, except for the differences listed here.

RunOps starts Chromium itself, and pages must behave as under Playwright. So runtime/browser/chromium/launch.py copies its switches, which
an update of Playwright may change.
"""

import pathlib
import re
import sys
from collections.abc import Iterable, Iterator

import playwright

from runtime.browser.chromium import launch

OURS = {
    "--remote-debugging-port": "the guard drives it too, which a pipe cannot share",
    "--remote-debugging-address": "the guard drives it too, which a pipe cannot share",
    "--disable-auto-reload": "a document that was not answered would be asked for again",
    "--disable-quic": "no second way to a site beside TCP",
    "--disable-features=Prerender2": "documents would load before anybody asked for them",
    "--disable-features=RenderDocument": "a frame anew for each document costs a third of a navigation",
    "--disable-features=WebUIOmniboxPopup": "pages behind the address bar cost two thirds of a start",
    "--disable-features=WebUIOmniboxAimPopup": "pages behind the address bar cost two thirds of a start",
    "--disable-features=WebUIOmniboxFullPopup": "pages behind the address bar cost two thirds of a start",
}
"""The switches that only RunOps has, each with the reason."""

THEIRS = {
    "--disable-edgeupdater": "of Edge",
    "--disable-updater-scheduler": "of Edge",
    "--edge-skip-compat-layer-relaunch": "of Edge",
    "--do-not-de-elevate": "of Windows",
    "--disable-features=TcpPortRandomizationWin": "of Windows",
    "--disable-features=msForceBrowserSignIn": "of Edge",
    "--disable-features=msEdgeUpdateLaunchServicesPreferredVersion": "of Edge",
}
"""The switches of Playwright that RunOps leaves out, each with the reason."""

OF_THE_RUN = frozenset({"--user-data-dir", "--no-sandbox"})
"""The switches that depend on the start."""

DRIVER = pathlib.Path(playwright.__file__).parent / "driver/package/lib/coreBundle.js"


class Unreadable(Exception):
    """The driver no longer lists its switches in the known place."""


def of_driver(text: str) -> frozenset[str]:
    """Return the switches with which this driver starts Chromium headless, one entry per feature."""
    plain = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    switches = _listed(plain, r"chromiumSwitches = \(options\) => \[(.*?)\]\.filter")
    headless = _listed(plain, r"chromiumSwitches\(\)\];\s*if \(options\.headless\) \{(.*?)\n        \}")
    return frozenset(
        [
            *(each for each in (*switches, *headless) if each.startswith("--") and not each.endswith("=")),
            *(f"--disable-features={each}" for each in _listed(plain, r"disabledFeatures = \[(.*?)\]\.filter")),
            *(f"--enable-features={each}" for each in _listed(plain, r"enabledFeatures = \(\) => \[(.*?)\]\.filter")),
        ]
    )


def _listed(text: str, place: str) -> list[str]:
    found = re.search(place, text, re.DOTALL)
    if found is None:
        raise Unreadable(place)
    return [each for each in re.findall(r'"([^"\n]*)"', found[1]) if each]


def apart(switches: Iterable[str]) -> Iterator[str]:
    """Yield the switches that do not depend on the start, one entry per feature."""
    for each in switches:
        name, _equals, value = each.partition("=")
        if name in ("--disable-features", "--enable-features"):
            yield from (f"{name}={feature}" for feature in value.split(","))
        elif name in OURS:
            yield name
        elif name.startswith("--") and name not in OF_THE_RUN:
            yield each


def differences(driver: str) -> list[str]:
    """Return the differences from this driver's switches that are not listed, and listed ones that no longer exist."""
    try:
        theirs = of_driver(driver)
    except Unreadable as error:
        return [f"the driver does not list its switches any more where this stood: {error}"]
    ours = frozenset(apart(launch.switches(pathlib.Path("/profile"), headed=False, sandbox=True)))
    return [
        *(f"{each}: Playwright has it, RunOps has not" for each in sorted(theirs - ours - THEIRS.keys())),
        *(f"{each}: RunOps has it, Playwright has not" for each in sorted(ours - theirs - OURS.keys())),
        *(f"{each}: stands in THEIRS, and Playwright has it no more" for each in sorted(THEIRS.keys() - theirs)),
        *(f"{each}: stands in THEIRS, and RunOps has it too" for each in sorted(THEIRS.keys() & ours)),
        *(f"{each}: stands in OURS, and RunOps has it no more" for each in sorted(OURS.keys() - ours)),
        *(f"{each}: stands in OURS, and Playwright has it too" for each in sorted(OURS.keys() & theirs)),
    ]


def main() -> int:
    """Check the switches of this checkout against the installed driver."""
    problems = differences(DRIVER.read_text(encoding="utf-8"))
    for problem in problems:
        print(f"runtime/browser/chromium/launch.py: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
