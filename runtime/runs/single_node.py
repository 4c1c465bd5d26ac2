"""One node of a file, run alone as an excerpt, with pinned values for everything that it reads from other nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from nodes import errors
from nodes.base import Leaf, Node
from nodes.browser_action.sessions import to_name
from nodes.errors import UsageError
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.template import Unfit
from nodes.values import Json
from runtime.engine import attempt
from runtime.engine import engine as engines
from runtime.language import prepare as language_prepare
from runtime.language import workflow
from runtime.language.checks.declarations import variables_of
from runtime.language.expressions.names_read import NOTHING, Chain, Fact
from runtime.language.expressions.references import written
from runtime.language.node_tree import Anatomy, NodeSource, ReferenceSite
from runtime.runs import excerpt
from runtime.secrets import masking, sources
from runtime.services import signed_in

INCOMING_SECONDS = 30.0

FACTS = frozenset({"errors", "taken", "failures"})  # fields of `run` that can be pinned, each by the id of a node
ARRIVALS = frozenset({"goto", "open_tab", "load_session"})  # actions that need no open page


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    loaded: workflow.Loaded
    node: Node
    pins: Mapping[str, Json]  # values by name: ids of other nodes, items, `loop`, `vars`, `run`
    url: str | None = None
    session: str | None = None  # name of a signed-in state to load before the page
    hidden: Sequence[str] = ()  # names of further secrets to mask, as a page may show them
    hold: bool = False  # withhold the action: of a leaf anything but a read, of a container its first side effect

    @property
    def actions(self) -> list[Leaf]:
        return [leaf for leaf in leaves(self.node) if leaf.effect_class == "effect"]

    def prepare(self, inputs: Mapping[str, Json], source: sources.SecretSource) -> language_prepare.Prepared:
        """Prepare the run. Raises UsageError ``not-pinned`` with all missing values, and the errors of ``prepare.prepare``."""
        found = Reading(self.loaded, self.node)
        self._refuse_unknown_pins(found)
        declared = self.loaded.workflow.inputs
        missing = [
            f"-i {name}=…"
            for name in found.inputs
            if name in declared and declared[name].required and name not in inputs
        ]
        missing += [f"--set {written(chain)}=…" for chain in found.names if not _given(self.pins, chain)]
        if missing:
            many = "values that nothing gives it" if len(missing) > 1 else "a value that nothing gives it"
            raise UsageError(
                "not-pinned",
                f"`{self.node.id}` reads {many}",
                fix=f"add {' '.join(missing)}",
                evidence={"pin": list[Json](missing)},
            )
        if self.url is None and (leaf := _needs_page(self.node)) is not None:
            raise UsageError(
                "no-page", f"`{leaf.id}` works on a page, and a trial begins without one", fix="add --url URL"
            )
        self._check_arrival()
        kept = {
            name: each for name, each in declared.items() if name in found.inputs or name in inputs or not each.required
        }
        own = self.loaded.workflow.model_copy(update={"inputs": kept, "secrets": [*found.secrets]})
        others = sources.known(source, [*self.loaded.workflow.secrets, *self.hidden], self.loaded.path.parent)
        self._refuse_secret(masking.Masker(others))
        prepared = language_prepare.prepare(dataclasses.replace(self.loaded, workflow=own), inputs, source)
        return dataclasses.replace(prepared, secrets={**others, **prepared.secrets})

    def _refuse_secret(self, masker: masking.Masker) -> None:
        pins = {f"--set {name}": value for name, value in self.pins.items()}
        for flag, value in {**pins, "--url": self.url, "--session": self.session}.items():
            if masker.json(value) != value:
                raise UsageError(
                    "secret-in-input",
                    f"`{flag}` holds a secret, and what a trial is given is kept in the log",
                    fix="give it something else: a field that takes secrets reads `secrets.NAME`",
                )

    def _check_arrival(self) -> None:
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise UsageError(
                "bad-input", f"`--url {self.url}` is no address", fix="give it whole, with http:// or https://"
            )
        try:
            to_name(self.session or "none")
        except Unfit as unfit:
            raise UsageError(
                "bad-input", f"`--session {self.session}` {unfit}", fix="give the name that `save_session` has"
            ) from None

    def _refuse_unknown_pins(self, found: Reading) -> None:
        for name in self.pins:
            if name in ("inputs", "secrets"):
                fix = "inputs are given by `-i NAME=VALUE`" if name == "inputs" else "secrets come from the environment"
                raise UsageError("unknown-pin", f"`--set {name}…` sets nothing", fix=fix)
            if name == "run" and isinstance(facts := self.pins[name], dict) and (other := facts.keys() - FACTS):
                raise UsageError(
                    "unknown-pin",
                    f"`--set run.{min(other)}…` sets nothing",
                    fix="of a run there are `run.errors.ID`, `run.taken.ID` and `run.failures.ID`",
                )
            if name not in found.known:
                close = errors.near(name, found.known)
                raise UsageError(
                    "unknown-pin",
                    f"{self.loaded.path} has nothing that is called `{name}`",
                    fix=f"did you mean `{close}`?" if close else "give the id of a node, or the name of an item",
                )
        facts: Json = self.pins.get("run")
        maps = {name: self.pins[name] for name in ("vars", "run") if name in self.pins}
        if isinstance(facts, dict):
            maps |= {f"run.{kind}": value for kind, value in facts.items()}
        for name, value in maps.items():
            if not isinstance(value, dict):
                raise UsageError(
                    "bad-input", f"`--set {name}=…` is no map", fix=f"set what is in it: `--set {name}.NAME=…`"
                )

    @property
    def header(self) -> dict[str, Json]:
        given = {"url": self.url, "session": self.session, "hold": self.hold}
        return {"node": self.node.id, "pins": dict(self.pins), **given}

    async def run(self, engine: engines.ExecutionEngine) -> Json:
        await self._arrive(engine)
        if self.hold:
            classes = {"effect"} if self.node.container else {"effect", "idempotent"}
            engine.state.holds = lambda node, _path: node.effect_class in classes
        # A trial is to show the error, even if the run would continue after it.
        node = self.node.model_copy(update={"on_error": "fail"})
        values = dict(self.pins)
        variables, facts = values.pop("vars", {}), values.pop("run", {})
        part = excerpt.Excerpt(
            segments=[excerpt.Segment(node, node.id)],
            names=[node.id],
            values=values,
            variables=variables,
            facts=facts,
        )
        try:
            return await part.run(engine)
        except attempt.EffectWithheld:
            engine.state.writer.scope("", "committed", "run", value=part.withheld)
            return part.withheld

    async def _arrive(self, engine: engines.ExecutionEngine) -> None:
        if self.session is None and self.url is None:
            return
        browser = await engine.state.need_browser()
        browser.bound(INCOMING_SECONDS)
        if self.session is not None:
            state = await signed_in.SignIns(engine.state.private.parent / "sessions").load(self.session)
            if state is None:
                raise UsageError(
                    "session-not-found",
                    f"there is no signed-in state `{self.session}`",
                    fix="run a workflow that signs in and keeps it with `save_session`",
                )
            await browser.page.sign_in(state.content)
        if self.url is not None:
            await browser.page.goto(self.url)


def leaves(node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    for _field, block in node.blocks():
        for each in block:
            yield from leaves(each)


def _needs_page(node: Node) -> Leaf | None:
    first = next((leaf for leaf in leaves(node) if leaf.touches_page), None)
    return first if first is not None and getattr(first, "action", None) not in ARRIVALS else None


def _given(pins: Mapping[str, Json], chain: Chain) -> bool:
    value: Json = pins
    for key in chain:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


class Reading:
    def __init__(self, loaded: workflow.Loaded, node: Node) -> None:
        anatomy = Anatomy(loaded.document.data, workflow.Workflow)
        everything = list(anatomy.every_unit())
        items = [each.text("as") for each in everything if each.model is Iterate]
        ids = [each.id for each in everything]
        self.known = {
            *(name for name in ids if name),
            *(name for item in items if item for name in (item, f"{item}_loop")),
            *("loop", "error", "vars", "run"),
        }
        """Every name that a pin may have."""
        self.inputs: list[str] = []
        self.secrets: list[str] = []
        self.names: list[Chain] = []  # names that must be pinned, in the order of reading
        self._loaded = loaded
        unit = next(each for each in everything if each.id == node.id)
        self._bound = bound(unit)
        self._set = {name for each in below(unit) for name in variables_of(each)}
        on_page = any(leaf.touches_page for leaf in leaves(node))
        for slot, facts in references(loaded, anatomy, unit, on_page=on_page):
            self._slot(slot, facts)
        for each in below(unit):
            given: Json = each.data.get("secrets")
            self.secrets += [name for name in given or [] if name not in self.secrets]

    def _slot(self, slot: ReferenceSite, facts: frozenset[Fact]) -> None:
        for use in self._loaded.templates[slot.text].names:
            match use.chain[:2]:
                case ("inputs", str(name)):
                    _add(self.inputs, name)
                case ("inputs",):
                    self.inputs = list(self._loaded.workflow.inputs)
                case ("secrets", str(name)):
                    _add(self.secrets, name)
                case ("vars", name) if name in self._set:
                    pass
                case ("run", name):
                    of_node = name in FACTS and use.chain[2:] and use.chain[2] not in self._bound
                    if of_node and not use.sure_of(use.chain[:3], facts):
                        _add(self.names, use.chain[:3])
                case (root, *_) if root not in self._bound:
                    deep = root in ("vars", "loop") or str(root).endswith("_loop")
                    chain = use.chain[: 2 if deep else 1]
                    if not use.sure_of(chain, facts):
                        _add(self.names, chain)
                case _:
                    pass


def _add(names: list[Json], name: Json) -> None:
    if name not in names:
        names.append(name)


def below(unit: NodeSource) -> Iterator[NodeSource]:
    """Yield a node and all in it, those of a ``confirm`` too."""
    yield unit
    for each in (*(child for _path, block in unit.blocks for child in block), *unit.confirm):
        yield from below(each)


def references(
    loaded: workflow.Loaded, anatomy: Anatomy, unit: NodeSource, *, on_page: bool
) -> Iterator[tuple[ReferenceSite, frozenset[Fact]]]:
    """Yield the references of a node and all in it, each with the facts that hold there by the node's ``when``.

    The browser's options come first, if the node works ``on_page``.
    """
    if on_page:
        yield from ((slot, NOTHING) for slot in anatomy.slots if slot.field != "output")
    when = unit.slot("when")
    condition = loaded.templates.get(when.text) if when is not None else None
    facts = condition.facts(truth=True) if condition is not None else NOTHING
    for each in below(unit):
        yield from ((slot, NOTHING if slot is when else facts) for slot in (*each.slots, *each.done))


def bound(unit: NodeSource) -> set[str]:
    """Return the names that a node gives its own content: ids of the nodes in it, items of loops, ``error``."""
    names = {each.id for each in below(unit) if each is not unit and each.id}
    for each in below(unit):
        if each.model is Iterate:
            item = each.text("as")
            names |= {"loop", *((item, f"{item}_loop") if item else ())}
        elif each.model is Handle:
            names.add("error")
    return names
