"""State of a session besides its messages: plan, description, draft, variables. Each change is a version in the log, with its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from director.draft import draft as drafts
from director.draft import goal as goals
from director.draft import layout, project_files
from director.draft.goal import Goal
from director.session import plan as plans
from director.session import variables
from nodes.errors import ModelError
from nodes.values import Json
from runtime.language import callees
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.secrets import masking

VERSIONS = 20  # number of draft versions searched for recently written nodes
LONGEST = 20_000  # limit of a description, in characters


class SessionState:
    def __init__(self, writer: LogWriter[session.Session], files: callees.Files | None = None) -> None:
        """``files`` are those that the draft may use; by default those of the project in which it will be saved."""
        self.writer, self._files = writer, files
        self._drafts: dict[int, drafts.Draft] = {}
        self.variables = variables.Variables(self)

    @property
    def history(self) -> session.Session:
        return self.writer.history

    @property
    def masker(self) -> masking.Masker:
        return self.writer.masker

    @property
    def conversation(self) -> str:
        return self.writer.conversation.id

    @property
    def files(self) -> callees.Files:
        return self._files if self._files is not None else project_files.Beside(self.goal.place.parent)

    @property
    def _told(self) -> entries.Build | None:
        header, kept = self.history.header, self.history.latest("goal")
        if kept is not None:
            return entries.Build.model_validate(self.writer.value_of(kept))
        return header.build if header is not None else None

    @property
    def is_goal_kept(self) -> bool:
        """True if the person has given the goal as such, or the first nodes were written for it."""
        told = self._told
        return told is not None and bool(told.goal.strip())

    @property
    def is_goal_given(self) -> bool:
        """True if the person has given the goal as such, so that it belongs to the instructions."""
        kept = self.history.latest("goal")
        return self.is_goal_kept and (kept is None or kept.by == "person")

    @property
    def goal(self) -> Goal:
        """What is built, and how it may be tried. Until a goal is kept, it is the person's last message, and the site the last one named."""
        header, told = self.history.header, self._told
        file = Path(header.file) if header is not None and header.file is not None else None
        goal = Goal.of(told) if told is not None else Goal.unsaid(file)
        if not goal.goal.strip():
            spoken = self.history.thread(entries.SESSION_THREAD).said
            words = [self.writer.text_of(each) for each in spoken if isinstance(each, entries.User) and each.mode]
            sites = [each for word in words for each in goals.addresses(word)]
            site = goal.url or (sites[-1] if sites else None)
            goal = dataclasses.replace(goal, goal=words[-1][: goals.LONGEST] if words else "", url=site)
        policy, runs = self.value("setting", "build_effects"), self.value("setting", "build_runs")
        return dataclasses.replace(goal, policy=policy or goal.policy, runs=runs or goal.runs)

    def value(self, of: str, name: str = "") -> Json:
        found = self.writer.history.latest(of, name)
        return self.writer.value_of(found) if found is not None else None

    def keep(self, version: entries.Version, value: Json) -> entries.Version:
        """Write the next version. Raises ModelError ``reason-missing``.

        A version equal to the last one, with the same reason, is not written again: a tool that is repeated after a crash passes the same.
        """
        reason = self.masker.text(" ".join(version.reason.split()))
        if not reason:
            raise ModelError("reason-missing", "there is no reason for the change", fix="say in a sentence why")
        before = self.writer.history.versions(version.of, version.name)
        if before and self._says(before[-1], version.model_copy(update={"reason": reason}), value):
            return before[-1]
        number = len(before) + 1
        path = "/".join(filter(None, (version.of, version.name, str(number))))
        return self.writer.version(version.model_copy(update={"number": number, "reason": reason}), value, path)

    def _says(self, last: entries.Version, version: entries.Version, value: Json) -> bool:
        same = (last.cleared, last.reason, last.by) == (version.cleared, version.reason, version.by)
        return same and self.writer.value_of(last) == self.masker.json(value)

    @property
    def plan(self) -> plans.Plan | None:
        data = self.value("plan")
        return plans.of(data) if data is not None else None

    def set_plan(self, plan: plans.Plan, *, reason: str, by: Literal["model", "person"] = "model") -> entries.Version:
        return self.keep(entries.Version(of="plan", number=0, reason=reason, by=by), plan.as_json())

    def patch_task(
        self, task_id: str, *, status: plans.Status | None = None, notes: str | None = None, reason: str
    ) -> plans.Plan:
        """Change the given fields of a task, and return the plan. Raises ModelError ``plan-missing``, ``task-unknown``, ``plan-invalid``."""
        before = self.plan
        if before is None:
            raise ModelError("plan-missing", "there is no plan yet", fix="write one first: `update_plan`")
        patched = before.patch(task_id, status=status, notes=notes)
        self.set_plan(patched, reason=reason)
        return patched

    @property
    def description(self) -> str:
        return str(self.value("description") or "")

    def describe(self, text: str, *, reason: str) -> entries.Version:
        """Replace the description. Raises ModelError ``description-too-long``."""
        if len(text) > LONGEST:
            raise ModelError(
                "description-too-long",
                f"the description has {len(text):,} characters, and may have {LONGEST:,}",
                fix="say it in fewer words",
            )
        return self.keep(entries.Version(of="description", number=0, reason=reason, by="model"), text)

    @property
    def draft(self) -> drafts.Draft | None:
        found = self.history.latest("draft")
        return self._draft_of(found) if found is not None else None

    def write_draft(
        self, draft: drafts.Draft, *, reason: str, by: Literal["model", "person", "file"] = "model"
    ) -> entries.Version:
        """Replace the draft. Raises ModelError ``secret-refused`` if it contains a secret."""
        variables.refuse_secret(self.masker, draft.text, "the draft")
        written = self.keep(entries.Version(of="draft", number=0, reason=reason, by=by), draft.text)
        self._drafts[written.seq] = draft
        return written

    def draft_with(self, sha256: str) -> drafts.Draft | None:
        """Return the draft whose text, secrets masked, has this checksum; None if there was none, or it is no longer valid."""
        for each in reversed(self.history.versions("draft")):
            if not each.cleared:
                text = self.masker.text(str(self.writer.value_of(each)))
                if entries.blob_of(text.encode(), "").sha256 == sha256:
                    return self.draft_of(each)
        return None

    def recent_nodes(self) -> list[str]:
        """Return the ids of the draft's last written nodes, newest first, at most ``layout.RECENT``."""
        found: dict[str, None] = {}
        for newer, older in self._versions_of_draft():
            before = older.loaded.fingerprints.items() if older is not None else ()
            written = [each for each, it in newer.loaded.fingerprints.items() if (each, it) not in before]
            found |= dict.fromkeys(reversed(written))
        now = self.draft
        known = now.loaded.fingerprints if now is not None else {}
        return [each for each in found if each in known][: layout.RECENT]

    def _versions_of_draft(self) -> Iterator[tuple[drafts.Draft, drafts.Draft | None]]:
        versions = [each for each in self.history.versions("draft") if not each.cleared][-VERSIONS:]
        texts = [self.draft_of(each) for each in versions]
        first = None if len(versions) < VERSIONS else texts.pop(0)
        for newer, older in zip(reversed(texts), [*reversed(texts[:-1]), first], strict=True):
            if newer is not None:
                yield newer, older

    def draft_of(self, version: entries.Version) -> drafts.Draft | None:
        """Return an earlier version; None if it is no longer valid, such as without a file that it uses."""
        try:
            return self._draft_of(version)
        except WorkflowInvalid:
            return None

    def _draft_of(self, version: entries.Version) -> drafts.Draft:
        if version.seq not in self._drafts:
            self._drafts[version.seq] = drafts.Draft.of(str(self.writer.value_of(version)), self.files)
        return self._drafts[version.seq]
