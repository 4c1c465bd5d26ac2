"""Logs the events of runs with Python's ``logging``, under the name ``runops``, secrets masked."""

from __future__ import annotations

import logging
import os
import sys

from runtime import events

LOGGER = logging.getLogger("runops")
# A program that has not set up logging gets no output.
LOGGER.addHandler(logging.NullHandler())


def silence() -> None:
    """Silence logs of libraries, and Python's messages about objects that outlive the loop, in a process of a command."""
    if os.environ.get("RUNOPS_TRACEBACK"):
        return
    logging.getLogger().addHandler(logging.NullHandler())
    sys.unraisablehook = lambda _unraisable: None


def wanted() -> bool:
    return LOGGER.isEnabledFor(logging.INFO)


def log(event: events.Event) -> None:
    """Log the event; the record has ``run`` and ``event``, the whole event as JSON."""
    level, text = _rendered(event)
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "run %s: %s", event.run, text, extra={"run": event.run, "event": event.as_json()})


def _rendered(event: events.Event) -> tuple[int, str]:
    match event:
        case events.RunStarted():
            return logging.INFO, f"{event.workflow} {'continues' if event.resumed else 'begins'}"
        case events.RunEnded(status="passed"):
            return logging.INFO, f"passed after {event.seconds:.1f} s"
        case events.RunEnded():
            why = event.error or event.question or {}
            at = f" at {event.path}" if event.path else ""
            said = f": {why['message']}" if "message" in why else ""
            return logging.ERROR if event.status == "failed" else logging.WARNING, f"{event.status}{at}{said}"
        case events.StepFinished(status="tolerated"):
            return logging.WARNING, f"{event.path} failed, and the run continues: {(event.error or {}).get('message')}"
        case events.StepFinished():
            return logging.DEBUG, f"{event.path} {event.status}"
        case events.StepStarted():
            return logging.DEBUG, f"{event.path} begins: {event.summary or event.type}"
        case events.StepWaiting():
            return logging.DEBUG, f"{event.path} waits for {event.what}"
        case events.LoopItem():
            return logging.DEBUG, f"{event.path} turn {event.index}"
        case events.Said():
            return logging.INFO, event.text
