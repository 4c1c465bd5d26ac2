"""Subjects of a session: a run, a workflow file, a draft."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from director.draft import layout
from director.session.state import SessionState
from director.session.subject import Subject
from director.subjects.runs import RunSubject
from nodes.errors import RunOpsError, UsageError
from runtime.context import window
from runtime.language import reader, workflow, yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log.store import store
from runtime.secrets import masking, sources
from runtime.services import functions
from runtime.system import regular_files
from runtime.workspace import host

MOST_PROBLEMS = 10
"""Limit of the reported mistakes of a file."""

GIVEN = "(given when a run is started)"
"""Placeholder of an input without a default."""

NO_BROWSER = "No browser belongs to it: only a run has one."


def of_run(kept: store.Kept, run: str) -> RunSubject:
    """Return a run by its id; its log is only read. Raises UsageError ``unknown-run``, LogError."""
    return RunSubject(kept, run)


def of_file(path: Path, here: host.Host) -> Subject:
    """Return a workflow file, always in its current state, even with mistakes in it. Raises UsageError if it cannot be read."""
    return FileSubject(path, here)


def of_draft(state: SessionState) -> Subject:
    """Return the session's draft, always in its current state."""
    return DraftSubject(state)


def gone(what: str, why: RunOpsError, state: SessionState) -> Subject:
    """Return the replacement for an unreadable subject: ``what`` it was, and ``why`` it cannot be read. The session's draft remains."""
    return GoneSubject(what, why, state)


def secrets_of(path: Path) -> list[str]:
    """Return the secrets that a workflow file declares, even with mistakes in it, as far as it can be read."""
    return _File(path, ()).secrets


class NoRun(Subject):
    """A subject that does not run: it has no browser, no steps, and no log."""

    @override
    def browser_state(self) -> str:
        return NO_BROWSER

    @override
    def directive(self) -> str | None:
        return None

    @override
    def state(self, path: str) -> str | None:
        return None

    @override
    def items(self) -> Sequence[window.WindowItem]:
        return ()


class FileSubject(NoRun):
    """A workflow file. Secrets in it are masked."""

    def __init__(self, path: Path, here: host.Host) -> None:
        """Raises UsageError if the file cannot be read."""
        if path.resolve().is_relative_to(here.settings.home.resolve()):
            raise UsageError(
                "file-not-read", f"{path} belongs to the logs in {here.settings.home}", fix="name a workflow file"
            )
        self._path = path
        self._allowed = here.settings.python_modules
        self._secrets = here.secrets
        self._masker = masking.Masker({})
        self._known: tuple[list[tuple[str, int, int]], _File] | None = None
        now = self._now
        if now.loaded is None and now.problem is not None and not isinstance(now.problem, WorkflowInvalid):
            raise now.problem

    @property
    def _now(self) -> _File:
        if self._known is None or not self._known[1].files or self._known[0] != _stamps(self._known[1].files):
            file = _File(self._path, self._allowed)
            self._known = (_stamps(file.files), file)
            self._masker = masking.Masker(sources.known(self._secrets, file.secrets, self._path.parent))
        return self._known[1]

    @property
    @override
    def title(self) -> str:
        now = self._now
        name = now.loaded.workflow.name if now.loaded is not None else self._path.stem
        return self._masker.text(
            f"workflow {name} ({self._path.name}): {'valid' if now.problem is None else 'not valid'}"
        )

    @override
    def summary(self) -> str:
        now = self._now
        lines = [self.title]
        if now.loaded is not None:
            file = now.loaded.workflow
            lines += [f"For: {file.description}"] if file.description else []
            given = ", ".join(f"{name} ({each.type})" for name, each in file.inputs.items())
            lines += [f"Inputs: {given}"] if given else []
            lines += [f"Secrets: {', '.join(file.secrets)}"] if file.secrets else []
            used = [each.path.name for each in now.loaded.files()[1:]]
            lines += [f"Uses: {', '.join(used)}"] if used else []
        lines.append(f"Nodes: {now.layout.kinds()}")
        lines += now.problems()
        return self._masker.text("\n".join(lines))

    @override
    def outline(self) -> str:
        return self._masker.text(self._now.layout.outline())

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        found = self._now.layout
        return self._masker.text(found.read(which, kind))

    @override
    def variables(self) -> dict[str, object]:
        loaded = self._now.loaded
        if loaded is None:
            return {}
        return self._masker.json(_declared(loaded.workflow))

    @override
    def description(self) -> str:
        loaded = self._now.loaded
        return self._masker.text((loaded.workflow.description if loaded is not None else None) or "")


class _File:
    """A file at one moment."""

    def __init__(self, path: Path, allowed: Sequence[str]) -> None:
        """Its nodes may call functions of the ``allowed`` Python modules."""
        self.loaded: workflow.Loaded | None = None
        self.problem: UsageError | None = None
        try:
            self.loaded = reader.load(path)
            functions.check(self.loaded, allowed)
        except UsageError as problem:
            self.problem = problem
        self.files = [each.path for each in self.loaded.files()] if self.loaded is not None else []
        if self.loaded is not None:
            document = self.loaded.document
        elif isinstance(self.problem, WorkflowInvalid):
            document = yaml_text.read(str(path), _content(path))
        else:
            document = yaml_text.read(str(path), "")
        self.layout = layout.Layout(document)

    @property
    def secrets(self) -> list[str]:
        """Return the secrets that it declares."""
        return self.loaded.workflow.secrets if self.loaded is not None else self.layout.secrets()

    def problems(self) -> list[str]:
        """Return its mistakes, as in ``runops validate``."""
        if self.problem is None:
            return []
        if not isinstance(self.problem, WorkflowInvalid):
            return [f"Not valid: {self.problem.message} ({self.problem.code}). {self.problem.fix or ''}".rstrip()]
        every = self.problem.diagnostics
        told = [each.render() for each in every[:MOST_PROBLEMS]]
        more = [f"… and {len(every) - MOST_PROBLEMS} more"] if len(every) > MOST_PROBLEMS else []
        return [f"Not valid, {len(every)} mistake{'s' if len(every) != 1 else ''}:", *told, *more]


class DraftSubject(NoRun):
    """The draft of a session."""

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
        number = len(self._state.history.versions("draft"))
        return f"{draft.summary()}\nVersion: {number}, valid"

    @override
    def outline(self) -> str:
        draft = self._state.draft
        return draft.outline() if draft is not None else ""

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
    """A renamed file or a pruned run: the session continues without it, about its draft if it has one."""

    def __init__(self, what: str, why: RunOpsError, state: SessionState) -> None:
        super().__init__(state)
        self._what, self._why = what, why

    @property
    @override
    def title(self) -> str:
        lost = f"{self._what}: cannot be read any more"
        return lost if self._state.draft is None else f"{lost}; {super().title}"

    @override
    def summary(self) -> str:
        lost = f"{self._what}: cannot be read any more: {self._why.message} ({self._why.code}). {self._why.fix or ''}".rstrip()
        return lost if self._state.draft is None else f"{lost}\n{super().summary()}"

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        return self.summary() if self._state.draft is None else super().nodes(which, kind)


def _declared(file: workflow.Workflow) -> dict[str, object]:
    """Return the values that a file has before it runs: inputs with a value, and hidden secrets."""
    inputs = {f"inputs.{name}": GIVEN if each.required else each.default for name, each in file.inputs.items()}
    return {**inputs, **{f"secrets.{name}": masking.MASK for name in file.secrets}}


def _content(path: Path) -> bytes:
    with regular_files.opened(path) as file:
        return file.read(yaml_text.LARGEST_FILE + 1)


def _stamps(files: list[Path]) -> list[tuple[str, int, int]]:
    """Return the modification stamps; the stamp of a missing file never matches."""
    found: list[tuple[str, int, int]] = []
    for file in files:
        try:
            state = file.stat()
        except OSError:
            return [("", -1, len(files))]
        found.append((str(file), state.st_mtime_ns, state.st_size))
    return found
