"""A chat with a program: messages come and events go as JSON objects, one a line."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError
from typing_extensions import override

from director.cli import screen
from nodes.errors import UsageError
from nodes.values import Json
from runtime import events
from runtime.context import window
from runtime.display import display
from runtime.display.text import harmless
from runtime.report import chat_events, endings
from runtime.report.parts import Costs


def messages(read: Callable[[], str]) -> Callable[[], str]:
    """Return a reader of messages: a line is ``{"say": TEXT}``, or the text itself.

    It raises UsageError ``line-unreadable`` for another object, and EOFError after the last line.
    """

    def message() -> str:
        line = read()
        if not line.lstrip().startswith("{"):
            return line
        try:
            return chat_events.Said.model_validate_json(line).say
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, each['loc']))} {each['msg']}".strip() for each in error.errors())
            raise UsageError(
                "line-unreadable", f"this line is no message: {said[:300]}", fix='write {"say": "…"}'
            ) from None

    return message


class Lines(screen.Screen):
    """Writes each event of a session as a line of JSON to stdout."""

    def __init__(self) -> None:
        super().__init__(as_it_comes=False, quiet=True)
        self._open = False  # the line that begins a chat for people says what the first event says

    def _emit(self, event: chat_events.Heard) -> None:
        self._answers.line(event.line())

    @override
    def opened(self, session: chat_events.SessionEvent) -> None:
        self._open = True
        self._emit(session)

    @override
    def ready(self) -> None:
        self._emit(chat_events.ReadyEvent())

    @override
    def asked(self, model: str, report: window.Report) -> None:
        super().asked(model, report)
        self._emit(chat_events.RequestEvent(model=model, tokens=report.tokens, limit=report.limit))

    @override
    def text(self, part: str) -> None:
        if part:
            self._emit(chat_events.TextEvent(text=part))

    @override
    def waiting(self, what: str) -> None:
        self._emit(chat_events.WaitingEvent(text=what))

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        self._emit(chat_events.CallEvent(path=path, tool=name, arguments=arguments))

    @override
    def done(self, path: str, text: str, *, failed: bool) -> None:
        self._emit(chat_events.OutputEvent(path=path, failed=failed, text=text))

    @override
    def spent(self, path: str, text: str) -> None:
        self._emit(chat_events.DelegateEvent(path=path, text=text))

    @override
    def ran(self, event: events.Event) -> None:
        self._emit(chat_events.RunEvent(run=event.as_json()))

    @override
    def steps(self) -> display.Display:
        return _Steps(self)

    @override
    def changed(self, of: str, name: str) -> None:
        self._emit(chat_events.ChangedEvent(of=of, name=name))

    @override
    def say(self, text: str, colour: int | None = None) -> None:
        if self._open and (told := harmless(text).strip().removeprefix("--  ")):
            self._emit(chat_events.NoteEvent(text=told))

    @override
    def _warns(self, warning: str) -> None:
        self.warnings.append(warning)
        self._emit(chat_events.WarningEvent(text=warning))

    @override
    def result(self, lines: list[str]) -> None:
        if lines:
            self._emit(chat_events.ResultEvent(text="\n".join(lines)))

    @override
    def meter(self, spent: dict[str, Json] | None, report: window.Report | None) -> None:
        if spent is not None:
            self._emit(chat_events.CostsEvent(costs=Costs.model_validate(spent)))

    @override
    def answered(self, text: str) -> None:
        """Write nothing: the ``answer`` event has it."""

    @override
    def word(self, word: endings.WordReport) -> None:
        self._emit(chat_events.AnswerEvent(said=word.said, answer=word.answer, error=word.error, run=word.run))

    @override
    def end(self, ending: endings.ChatEnding) -> None:
        self._emit(chat_events.EndEvent(ending=ending))


class _Steps(display.Display):
    """Passes on the events of a run that a person began."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    @override
    def __call__(self, event: events.Event) -> None:
        self._lines.ran(event)
