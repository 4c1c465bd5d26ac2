"""Workflow files and drafts as subjects of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from typing_extensions import override

from director.draft import layout
from director.session.state import SessionState
from director.session.subject import Subject
from nodes.errors import RunOpsError, UsageError
from runtime.context import briefs
from runtime.language import reader, workflow, yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.secrets import masking, sources
from runtime.services import functions
from runtime.system import regular_files
from runtime.workspace import host, run_index

MOST_PROBLEMS = 10
GIVEN = "(given when a run is started)"  # placeholder of an input without a default


class FileSubject(Subject):
    """A workflow file, valid or not, read anew each time. Secrets in it are masked."""

    def __init__(self, path: Path, here: host.Host) -> None:
        if path.resolve().is_relative_to(here.settings.home.resolve()):
            raise UsageError(
                "file-not-read", f"{path} belongs to the logs in {here.settings.home}", fix="name a workflow file"
            )
        self.path, self._here = path, here
        now = self._now
        if now.loaded is None and now.problem is not None and not isinstance(now.problem, WorkflowInvalid):
            raise now.problem

    @property
    def _now(self) -> _File:
        return _File(self.path, self._here.settings.python_modules)

    def _masker(self, now: _File) -> masking.Masker:
        return masking.Masker(sources.known(self._here.secrets, now.secrets, self.path.parent))

    def _masked(self, text: Callable[[_File], str]) -> str:
        now = self._now
        return self._masker(now).text(text(now))

    @property
    @override
    def title(self) -> str:
        return self._masked(self._title)

    def _title(self, now: _File) -> str:
        name = now.loaded.workflow.name if now.loaded is not None else self.path.stem
        return f"workflow {name} ({self.path.name}): {'valid' if now.problem is None else 'not valid'}"

    @override
    def summary(self) -> str:
        return self._masked(lambda now: "\n".join(self._summary(now)))

    def _summary(self, now: _File) -> Iterator[str]:
        yield self._title(now)
        yield from self._facts(now)
        yield from now.problems()
        yield f"Next: {'`/run` runs it' if now.problem is None else 'the mistakes are fixed in the file'}"

    def _facts(self, now: _File) -> Iterator[str]:
        yield f"Id: {self.path.name}"
        if now.loaded is not None:
            yield from described(now.loaded.workflow)
            uses = ", ".join(each.path.name for each in now.loaded.files()[1:])
            yield from [f"Uses: {uses}"] if uses else []
        yield f"Nodes: {now.layout.kinds()}"
        yield f"Last run: {self._last_run()}"

    def _last_run(self) -> str:
        found = run_index.last_of(self._here.reader, str(self.path.absolute()))
        return ended(found.id, found.state, found.started, found.ended) if found is not None else NEVER_RUN

    @override
    def facts(self) -> Sequence[str]:
        return self._masked(lambda now: "\n".join(self._facts(now))).splitlines()

    @override
    def outline(self, configuration: int = 0) -> str:
        return self._masked(lambda now: now.layout.outline(configuration=configuration))

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        return self._masked(lambda now: now.layout.read(which, kind))

    @override
    def variables(self) -> dict[str, object]:
        now = self._now
        return self._masker(now).json(_declared(now.loaded.workflow)) if now.loaded is not None else {}

    @override
    def description(self) -> str:
        return self._masked(lambda now: now.loaded.workflow.description or "" if now.loaded is not None else "")


class _File:
    def __init__(self, path: Path, allowed: Sequence[str]) -> None:
        self.loaded: workflow.Loaded | None = None
        self.problem: UsageError | None = None
        try:
            self.loaded = reader.load(path)
            functions.check(self.loaded, allowed)
        except UsageError as problem:
            self.problem = problem
        if self.loaded is not None:
            document = self.loaded.document
        else:
            text = _content(path) if isinstance(self.problem, WorkflowInvalid) else b""
            document = yaml_text.read(str(path), text)
        self.layout = layout.Layout(document)

    @property
    def secrets(self) -> list[str]:
        return self.loaded.workflow.secrets if self.loaded is not None else self.layout.secrets()

    def problems(self) -> list[str]:
        if self.problem is None:
            return []
        if not isinstance(self.problem, WorkflowInvalid):
            return [f"Not valid: {self.problem.message} ({self.problem.code}). {self.problem.fix or ''}".rstrip()]
        every = self.problem.diagnostics
        problems = [each.render() for each in every[:MOST_PROBLEMS]]
        more = [f"… and {len(every) - MOST_PROBLEMS} more"] if len(every) > MOST_PROBLEMS else []
        return [f"Not valid, {len(every)} mistake{'s' if len(every) != 1 else ''}:", *problems, *more]


def secrets_of(path: Path) -> list[str]:
    return _File(path, ()).secrets


class DraftSubject(Subject):
    def __init__(self, state: SessionState) -> None:
        self._state = state

    @property
    @override
    def title(self) -> str:
        draft = self._state.draft
        return "draft: no nodes yet" if draft is None else f"draft of {draft.loaded.workflow.name}"

    @override
    def summary(self) -> str:
        draft = self._state.draft
        if draft is None:
            return self.title
        return "\n".join([self.title, *self.facts()])

    @override
    def facts(self) -> Sequence[str]:
        draft = self._state.draft
        if draft is None:
            return [f"Id: {self._state.conversation}"]
        number = len(self._state.history.versions("draft"))
        return [
            f"Id: {self._state.conversation}",
            *described(draft.loaded.workflow),
            f"Nodes: {draft.layout.kinds()}",
            f"Version: {number}, valid",
            f"Last run: {self.last_run()}",
        ]

    def last_run(self) -> str:
        return "none of this draft yet"

    @override
    def outline(self, configuration: int = 0) -> str:
        draft = self._state.draft
        return draft.outline(configuration) if draft is not None else ""

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        draft = self._state.draft
        if draft is None:
            return ""
        return draft.layout.read(which, kind, self._state.recent_nodes())

    @override
    def variables(self) -> dict[str, object]:
        draft = self._state.draft
        return _declared(draft.loaded.workflow) if draft is not None else {}

    @override
    def description(self) -> str:
        return self._state.description


class GoneSubject(DraftSubject):
    """A subject that cannot be read any more: the session continues without it, about its draft."""

    def __init__(self, what: str, why: RunOpsError, state: SessionState) -> None:
        super().__init__(state)
        self._lost = f"{what}: cannot be read any more"
        self._why = f"{self._lost}: {why.message} ({why.code}). {why.fix or ''}".rstrip()

    @property
    @override
    def title(self) -> str:
        return f"{self._lost}; {super().title}"

    @override
    def summary(self) -> str:
        return f"{self._why}\n{super().summary()}"


NEVER_RUN = "none yet"


def described(file: workflow.Workflow) -> Iterator[str]:
    """Yield lines with name, purpose, inputs and secrets of a workflow."""
    facts = {
        "Name": file.name,
        "For": file.description,
        "Inputs": ", ".join(f"{name} ({each.type})" for name, each in file.inputs.items()),
        "Secrets": ", ".join(file.secrets),
    }
    yield from (f"{name}: {' '.join(said.split())}" for name, said in facts.items() if said)


def ended(run: str, state: str, began: str, last: str, path: str | None = None, code: str | None = None) -> str:
    """Return on one line when a run was, and how it ended."""
    where = f" at {briefs.ours(path)}" if path else ""
    why = f" ({code})" if code else ""
    return f"{run}: {state}{where}{why}, begun {began}, last entry {last}"


def _declared(file: workflow.Workflow) -> dict[str, object]:
    inputs = {f"inputs.{name}": GIVEN if each.required else each.default for name, each in file.inputs.items()}
    return {**inputs, **{f"secrets.{name}": masking.MASK for name in file.secrets}}


def _content(path: Path) -> bytes:
    with regular_files.opened(path) as file:
        return file.read(yaml_text.LARGEST_FILE + 1)
