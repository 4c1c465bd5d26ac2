"""``run_draft`` and ``finish``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from director.effects import effects
from director.proving import checks, draft_runs, finish, proofs, repair_builds, report
from director.proving.draft_runs import RUN_DRAFT
from director.tools import barrier, begin, build_context
from director.tools.toolbox import FINISH, PERHAPS, TEXT, OfBuild, Toolset, of, tool
from nodes.errors import ModelError, SetupError
from nodes.values import Json
from runtime.context import briefs
from runtime.log import entries
from runtime.messages.messages import Tool
from runtime.models.turns import call_checks, turn
from runtime.observation import page_text

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

RUN = tool(
    RUN_DRAFT,
    "Runs the whole draft once in a fresh browser.",
    {"inputs": of(PERHAPS, "Other inputs than the goal's, as a JSON map."), "reason": TEXT},
)
END = tool(
    FINISH,
    "Proves the draft by whole runs, saves it, and ends the build.",
    {
        "done": {"type": "boolean", "description": "false: it cannot be done; `summary` says why."},
        "summary": of(TEXT, "What the workflow does and yields."),
        "unproved": of(PERHAPS, "What stays undone, or empty, by id, and why."),
        "reason": TEXT,
    },
)


def toolsets(build: BuildContext) -> Sequence[Toolset]:
    return (RunDraft(build, RUN), Finish(build, END))


class _WholeRuns(OfBuild):
    async def _done(
        self,
        arguments: dict[str, Json],
        place: turn.Place,
        work: Callable[[entries.Call], Awaitable[turn.Outcome]],
    ) -> turn.Outcome:
        async def whole(call: entries.Call) -> turn.Outcome:
            try:
                return await work(call)
            except SetupError as error:
                if (said := error.evidence.get("output")) is None:
                    raise
                text = f"{call_checks.render_error(error.as_json())}\nits last lines:\n{page_text.fenced(str(said))}"
                return turn.Outcome(text, error=error.as_json())

        return await barrier.done(self._build.writer, self.tool.name, arguments, place, whole)

    @override
    def needs(self, arguments: Mapping[str, Json], failed: str, theirs: Mapping[str, Json]) -> bool:
        return True

    @override
    def interrupted_outcome(self, call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of a call that a crash interrupted: the state of its runs, and the steps at which they stopped."""
        build, ran = self._build, list[str]()
        for number, run in enumerate(build.runs.of(call), 1):
            past = build.runs.past(run)
            if past is None:
                ran.append(f"run {number} ({run}): its log cannot be read")
                continue
            open_steps = [briefs.ours(each.call.path) for each in past.open_calls()]
            state = past.status if past.ending is not None else "interrupted"
            if (withheld := proofs.withheld_at(past)) is not None:
                state = f"held at {briefs.ours(withheld)}"
            if open_steps:
                state += f" at {', '.join(open_steps)}, which may have happened"
            ran.append(f"run {number} ({run}): {state}")
        error = ModelError(
            "interrupted",
            f"`{call.action}` was interrupted, and has no result: {'; '.join(ran) or 'no run of it was begun'}",
            fix="call again: the site is reset before each run, and all runs are repeated"
            if build.resets
            else "what a run did on the site stays done: look at it, then call again; all runs are repeated",
        )
        return turn.Outcome("", error=build.writer.masker.json(error.as_json()))


class RunDraft(_WholeRuns):
    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        build = self._build
        begin.with_draft(build)
        loaded = draft_runs.as_saved(build)
        inputs = {**draft_runs.declared(build, loaded), **draft_runs.parsed_inputs(arguments["inputs"])}
        fit = draft_runs.prepared(build, loaded, inputs)
        holds = await build.effects.demand(effects.actions_of(loaded), place=place.path, inputs=fit.inputs, pins={})

        async def work(call: entries.Call) -> turn.Outcome:
            ran = await draft_runs.run(build, call, loaded, fit, holds)
            every = proofs.of_runs(loaded, [ran], draft_runs.done_alone(build, loaded))
            lines = [report.text_of(ran, loaded), *filter(None, [draft_runs.differs(build, ran)])]
            done = [
                f"{each.key}: {each.describe()}{checks.agreed(loaded, [ran], each.key)}{report.led_to(ran, loaded, each.key)}"
                for each in every
            ]
            lines += [f"actions: {'; '.join(done)}"] if done else []
            unseen = checks.not_looked_at(loaded, [ran])
            lines += [f"{build_context.NOT_LOOKED_AT}: {', '.join(unseen)}"] if unseen and ran.went_well else []
            more = proofs.next_step(every) if ran.status == "passed" or ran.already is not None else ""
            lines += [f"next: {more}"] if more else []
            lines += [finish.ahead(build, fit, ran, more)] if ran.went_well else []
            text = build.writer.masker.text("\n".join(lines))
            failed = ModelError("draft-failed", report.head(ran), fix="fix the draft where it fails")
            return turn.Outcome(text, text, None if ran.went_well else failed.as_json())

        return await self._done(arguments, place, work)


class Finish(_WholeRuns):
    def __init__(self, build: BuildContext, offered: Tool) -> None:
        super().__init__(build, offered)
        self._counts: finish.Proof | None = None
        """A proof that went well, but was refused because something was not mentioned: it still counts."""

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        build = self._build
        said = finish.FinishRequest(str(arguments["summary"]), str(arguments["unproved"] or ""))
        if not arguments["done"]:
            return await barrier.done(build.writer, FINISH, arguments, place, lambda _call: self._given_up(said))
        begin.with_draft(build)
        if missing := list(finish.missing(build, said)):
            text = "\n".join(["not done; missing:", *map(str, missing)]) + finish.foreseen(build, said)
            shown = build.writer.masker.text(f"{text}{finish.hints(build)}")
            return turn.Outcome(shown, error=build.writer.masker.json(_unfinished(text)))
        loaded = draft_runs.as_saved(build)
        holds = await build.effects.demand(effects.actions_of(loaded), place=place.path, pins={})

        async def work(call: entries.Call) -> turn.Outcome:
            proof, self._counts = self._counts, None
            if proof is None or not finish.is_current(build, proof):
                proof = await finish.prove(build, call, loaded, holds)
            return self._judged(proof, said)

        return await self._done(arguments, place, work)

    def _judged(self, proof: finish.Proof, said: finish.FinishRequest) -> turn.Outcome:
        build = self._build
        if not all(each.went_well for each in proof.runs):
            ours, text = finish.refusal(build, proof)
            failed = ModelError("not-proved", ours, fix="fix the draft where it fails")
            return turn.Outcome(build.writer.masker.text(text), error=build.writer.masker.json(failed.as_json()))
        if not finish.is_current(build, proof):
            return _failed(build, finish.CHANGED)
        if (missed := repair_builds.missed(build, proof.loaded, proof.runs)) is not None:
            return _failed(build, missed)
        if names := finish.unsaid(proof, said):
            self._counts = proof
            text = finish.say_more(proof, names)
            shown = "\n".join(
                [*proof.short, f"{text}{finish.hints(build)}", *report.confirms(proof.every, proof.loaded)]
            )
            return turn.Outcome(build.writer.masker.text(shown), error=_unfinished(text))
        value: dict[str, Json] = build.writer.masker.json(finish.accepted(build, proof, said))
        lines = [
            *proof.short,
            f"accepted; proved: {value['proved']}",
            f"saved: {value['file']}; notes: {value['notes']}",
        ]
        lines += [
            f"{each.key}: {each.describe()}{checks.agreed(proof.loaded, proof.every, each.key)}"
            for each in proof.listed
        ]
        unseen = proof.not_looked_at
        lines += [f"{build_context.NOT_LOOKED_AT}: {', '.join(unseen)}"] if unseen else []
        lines += [proof.without_reset] if proof.without_reset else []
        if "fix" in value:
            lines.append(f"the change is left for review: {value['fix']['kept']}")
        if proof.unreached:
            lines.append(f"executed in no run: {', '.join(proof.unreached)}")
        lines += report.confirms(proof.every, proof.loaded)
        return turn.Outcome("\n".join(lines), value)

    async def _given_up(self, said: finish.FinishRequest) -> turn.Outcome:
        value = self._build.writer.masker.json(finish.leave_partial(self._build, said.summary))
        where = f"the draft as it is: {value['file']}" if value["file"] else "there was no draft to save"
        stays = f"; {value['stays']} is as it was" if "stays" in value else ""
        return turn.Outcome(f"given up; {where}{stays}", value)


def _failed(build: BuildContext, error: ModelError) -> turn.Outcome:
    return turn.Outcome(build.writer.masker.text(str(error)), error=build.writer.masker.json(error.as_json()))


def _unfinished(text: str) -> dict[str, Json]:
    return ModelError("not-finished", text, fix="fix each of them").as_json()
