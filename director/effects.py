"""What a build may do on the site of class *effect*: each deed is asked for as it is, done, or held.

A yes is for one deed: this node, at this place, with this action, target and value, over these items, with these inputs. Where any of that is edited, it
is another deed, and a person is asked again. A yes to a click never lets an agent click: an agent is asked for as one that acts by itself, and only then
its own deeds are covered. What was answered stands in the session's log, so that a build that goes on asks nothing twice.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import ipaddress
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.base import Leaf, Node
from nodes.context import Context
from nodes.errors import Paused, RunOpsError, UsageError
from nodes.group import Group
from nodes.iterate import Iterate
from nodes.template import OPENING
from nodes.values import Json
from runtime import briefs, engine, journal, log, sessions
from runtime.display.text import harmless
from runtime.language import workflow

if TYPE_CHECKING:
    from director.workshop import Workshop

YES, NO, HOLD_ALL = "yes", "no", "hold all"
CHOICES = (YES, NO, HOLD_ALL)
"""What a person may answer where a deed is asked for. Whatever else they say is no yes."""

ALL = "all"
"""The name of the grant that holds every deed from then on."""

MOST_READ = 8
"""Nodes of which a person is told that a deed reads them."""

LONGEST = 300
"""Characters of a field of a deed that a person is shown."""

NO_DEED = frozenset({"description", "verify", "retry", "timeout", "on_error", "after_crash", "confirm"})
"""Fields of a leaf that do not change what it does on the site."""

NO_DEED_OF_AGENT = NO_DEED | {"max_turns", "max_output", "budget", "model", "output"}

FIELDS = frozenset({"fill", "type", "check", "uncheck", "select"})
"""Actions that fill in a form, and send none."""

AROUND = frozenset({"over", "while_", "until", "max", "limit"})
"""Fields of a loop that say for what the nodes in it are done."""

HARMLESS = frozenset({"http:", "https:", "about:"})
"""What addresses may begin with whose documents are made by the site, or are blank."""

_INVISIBLE = re.compile(r"[\x00-\x20]")
"""What browsers leave out of an address before they look at its scheme."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
_KEYS = re.compile(r"\[[^\]]*\]")
_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_SCOUTING = re.compile(r"(?:^|/)\d+_debug_\w+$")


@dataclasses.dataclass(frozen=True, slots=True)
class Rests:
    """What a deed rests on: with any of this otherwise it would be another one."""

    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The inputs that are read, with their values."""
    nodes: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The nodes whose values are read, by id, as they stand in the file; also those that these read."""
    pins: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Values that were set by hand, by the names for which they stand."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deed:
    """A deed as it is asked for."""

    leaf: Leaf
    path: str
    """Without the keys of items."""
    around: Mapping[str, Json]
    """What the loops around it go over, by their ids."""
    rests: Rests
    """What its fields and those around it read."""
    opened: Json = None
    """The address that the file opens last before it."""
    place: str = ""
    """The call that wants it, where it is asked for each time."""

    @property
    def key(self) -> str:
        """A digest of all that a yes is for."""
        rests = dataclasses.asdict(self.rests)
        said = [self.path, self.place, core(self.leaf), dict(self.around), rests, self.opened]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def is_agent(self) -> bool:
        """Whether it is a model that does deeds of its own."""
        return self.leaf.asks == "agent"


def core(leaf: Leaf) -> Json:
    """What a leaf does on the site: all its fields but those that say how it is checked, waited for and tried again."""
    left_out = NO_DEED_OF_AGENT if leaf.asks == "agent" else NO_DEED
    return leaf.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(left_out), warnings=False)


def _is_filled(said: Json, written: Json) -> bool:
    """Whether these are the fields of a deed as it was asked for, or the same with its references filled in."""
    if isinstance(written, str) and OPENING in written:
        return True
    if isinstance(said, dict) and isinstance(written, dict):
        one: dict[str, Json] = said
        other: dict[str, Json] = written
        return all(_is_filled(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(said, list) and isinstance(written, list) and len(said) == len(written):
        return all(map(_is_filled, said, written))
    return said == written


def changes(leaf: Leaf) -> bool:
    """Whether the leaf does a deed of class *effect*.

    An address that is none of a site is one, whatever it is said to be: it may be a script, or a page of one's own that sends a form to the site.
    """
    if leaf.effect_class == "effect":
        return True
    url = _INVISIBLE.sub("", str(getattr(leaf, "url", None) or "")).lower()
    scheme = _SCHEME.match(url)
    return scheme is not None and scheme[0] not in HARMLESS


def only_signs_in(loaded: workflow.Loaded, path: str) -> bool:
    """Whether a deed seems to do nothing but sign in: it comes right behind the fields of a form, into one of which a secret was typed."""
    found, typed = loaded.find(path), False
    if found is None:
        return False
    for node in found.file.nodes():
        if node.id == found.node.id:
            return typed
        if isinstance(node, Leaf):
            texts = [each for each in _texts(_without_checks(node)) if each in found.file.templates]
            secret = any(use.root == "secrets" for each in texts for use in found.file.templates[each].names)
            typed = getattr(node, "action", None) in FIELDS and (typed or secret)
    return False


def static(path: str) -> str:
    """A step path without the keys and numbers of items: the same for every turn of a loop."""
    return _KEYS.sub("", path)


def is_loopback(origin: str) -> bool:
    """Whether a site at this origin runs on this machine."""
    host = urllib.parse.urlsplit(origin).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_allow(origins: Sequence[str]) -> None:
    """Raise UsageError ``effects-not-local`` where deeds are all to be done without a question, and any of the sites is not on this machine."""
    others = [each for each in origins if not is_loopback(each)]
    if others or not origins:
        where = ", ".join(others) or "a site that is not named"
        raise UsageError(
            "effects-not-local",
            f"`--effects allow` does everything without a question, and is for sites on this machine only, not for {where}",
            mend="use `--effects ask` or `--effects hold`, or build against a copy on 127.0.0.1",
        )


class Grants:
    """What was asked for, and what was answered. Implements ``director.workshop.Effects``."""

    def __init__(self, shop: Workshop) -> None:
        """Nobody is asked yet."""
        self._shop = shop
        self._asking = asyncio.Lock()

    async def demand(
        self,
        deeds: Sequence[tuple[Leaf, str]],
        *,
        place: str,
        page: str | None = None,
        inputs: Mapping[str, Json] | None = None,
        pins: Mapping[str, Json] | None = None,
    ) -> engine.Holds:
        """What of these deeds is held, as ``director.workshop.Effects`` says."""
        loaded = self._loaded
        given = self._inputs(loaded, inputs)
        scouting = place if _SCOUTING.search(place) else ""
        pinned = self._shop.desk.variables.all() if pins is None else pins
        known_ = Rests(given, {}, pinned)
        wanted = [_deed(loaded, leaf, path, known_, scouting) for leaf, path in deeds if changes(leaf)]
        policy = self._policy(loaded, given)
        granted: set[str] = set()
        if policy == "ask":
            async with self._asking:
                granted = {each.path for each in wanted if await self._is_granted(each, place, page)}
                if self._policy(loaded, given) == "hold":
                    granted = set()
        known = {each.path: each for each in wanted}

        def holds(leaf: Leaf, path: str) -> bool:
            if policy == "allow" or not changes(leaf):
                return False
            where = key_of(loaded, path)
            deed = known.get(where)
            if deed is not None:
                return where not in granted or not _is_filled(core(leaf), core(deed.leaf))
            # What an agent does by itself stands below its own path.
            return not any(known[each].is_agent for each in _above(loaded, path) if each in granted)

        return holds

    @property
    def _loaded(self) -> workflow.Loaded | None:
        draft = self._shop.desk.draft
        return draft.loaded if draft is not None else None

    def _inputs(self, loaded: workflow.Loaded | None, inputs: Mapping[str, Json] | None) -> Mapping[str, Json]:
        given = dict(self._shop.wish.inputs if inputs is None else inputs)
        if loaded is None:
            return given
        try:
            return loaded.check_inputs({name: each for name, each in given.items() if name in loaded.workflow.inputs})
        except RunOpsError:
            return given

    def _policy(self, loaded: workflow.Loaded | None, inputs: Mapping[str, Json]) -> str:
        wish = self._shop.wish
        if wish.policy == "ask":
            return "hold" if self._shop.pen.history.latest("grant", ALL) is not None else "ask"
        if wish.policy != "allow":
            return "hold"
        try:
            origins = list(loaded.origins(inputs)) if loaded is not None else []
        except RunOpsError:
            return "hold"
        if wish.url is not None:
            origins.append(wish.url)
        return "allow" if origins and all(map(is_loopback, origins)) else "hold"

    async def _is_granted(self, deed: Deed, place: str, page: str | None) -> bool:
        shop = self._shop
        if shop.pen.history.latest("grant", ALL) is not None:
            return False
        kept = shop.pen.history.latest("grant", deed.key)
        known: dict[str, Json] = shop.pen.value_of(kept) if kept is not None else {}
        if known.get("answer") is not None:
            return known["answer"] == YES
        # A question that waits is asked again in the words in which it was asked: its answer was given to these.
        question = str(known.get("question") or self.question(deed, page))
        told: dict[str, Json] = {
            "answer": None,
            "question": question,
            "what": _one_line(deed.leaf.summary()),
            "path": briefs.ours(deed.path),
            "place": place,
        }
        try:
            said = await shop.person.ask(question, CHOICES, place=place)
        except Paused:
            self._keep(deed.key, told, "a person is asked")
            raise
        answer = " ".join(said.strip().lower().split())
        answer = {"y": YES, "n": NO}.get(answer, answer)
        told["answer"] = answer if answer in CHOICES else NO
        if answer == HOLD_ALL:
            self._keep(ALL, told, "everything is held from here on")
        self._keep(deed.key, told, f"a person answered: {told['answer']}")
        return answer == YES

    def _keep(self, name: str, value: Json, reason: str) -> None:
        shop = self._shop
        shop.desk.keep(log.Version(of="grant", name=name, number=0, reason=reason, by="person"), value)
        shop.pen.barrier()

    def question(self, deed: Deed, page: str | None) -> str:
        """What a person is asked: what would be done, on what, for what, and where. The words of the deed may come from a page, and are quoted."""
        lines = ["The build wants to do what changes the site. May it do just this?"]
        if deed.is_agent:
            lines = [
                "The build wants to let a model act on the site by itself: it may click and type. May it do just this?"
            ]
        lines.append(f"  what   {_one_line(deed.leaf.summary())}")
        for name, value in sorted(_fields(deed.leaf).items()):
            lines.append(f"  {name:<6} {_one_line(value)}")
        for name, value in deed.around.items():
            lines.append(f"  each   of {name}: {_one_line(value)}")
        for name, value in deed.rests.inputs.items():
            lines.append(f"  with   inputs.{name} = {_one_line(value)}")
        for name, value in deed.rests.pins.items():
            lines.append(f"  with   {name} = {_one_line(value)} (set by hand)")
        for name, value in list(deed.rests.nodes.items())[:MOST_READ]:
            lines.append(f"  from   {name}: {_one_line(value)}")
        lines.append(f"  step   {briefs.ours(deed.path)}")
        where = page or deed.opened or self._shop.wish.url
        lines += [f"  page   {_one_line(where)}"] if where else []
        if deed.place:
            lines.append("  (a look around: it is asked each time)")
        return self._shop.pen.masker.text("\n".join(lines))


def answers(pen: journal.Journal[sessions.Session]) -> Iterator[dict[str, Json]]:
    """What was asked in a build, in order: ``answer`` (None while it waits), ``question``, ``what``, ``path``, ``place``."""
    for name in pen.history.names_of("grant"):
        if name != ALL and (found := pen.history.latest("grant", name)) is not None:
            yield pen.value_of(found)


def deeds_of(loaded: workflow.Loaded) -> list[tuple[Leaf, str]]:
    """Every leaf of class *effect* of a file and of the files that it uses, each with its path, in the order in which they are run."""
    return [(leaf, path) for leaf, path in leaves_of(loaded) if changes(leaf)]


def leaves_of(loaded: workflow.Loaded, within: str = "") -> Iterator[tuple[Leaf, str]]:
    """Every leaf that a run of the file may come to, each with its path (``_key``): those of files that it uses too, those of ``confirm`` not."""
    for node in loaded.nodes():
        if isinstance(node, Leaf) and not _confirms(loaded, node):
            yield node, f"{within}{node.id}"
        elif (callee := loaded.callees.get(node.id)) is not None:
            yield from leaves_of(callee, f"{within}{node.id}/")


def _confirms(loaded: workflow.Loaded, node: Leaf) -> bool:
    """Whether the node belongs to a ``confirm``: reads and ``goto``, done by nobody who builds."""
    around = loaded.index[node.id][1]
    return bool(around) and isinstance(around[-1], Leaf)


def _deed(loaded: workflow.Loaded | None, leaf: Leaf, path: str, known: Rests, place: str) -> Deed:
    found = loaded.find(path) if loaded is not None else None
    if loaded is None or found is None or found.node.id != leaf.id:
        return Deed(leaf, key_of(loaded, path), {}, Rests(), place=place)
    around: dict[str, Json] = {}
    for each in found.around:
        if isinstance(each, Iterate):
            told = each.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=set(AROUND))
            around[each.id] = told["over"] if list(told) == ["over"] else told
        elif isinstance(each, Group) and each.use is not None:
            around[each.id] = each.model_dump(mode="json", by_alias=True, include={"use", "with_"})
    opened = _opened_before(found)
    rests = _rests(loaded, [core(leaf), around, opened], known)
    return Deed(leaf, key_of(loaded, path), around, rests, opened, place)


def _opened_before(found: workflow.Found) -> Json:
    """The address that is opened last before a step, in the order of its file."""
    last: Json = None
    for node in found.file.nodes():
        if node.id == found.node.id:
            break
        last = getattr(node, "url", None) or last
    return last


def _rests(loaded: workflow.Loaded, said: Json, known: Rests) -> Rests:
    """What these fields read, and what that reads in turn, in the file or in any that it uses; ``known`` are all inputs and all values set by hand.

    A name of one file is taken for that of another, too: at worst somebody is asked once more.
    """
    files, roots = loaded.files(), set[str]()
    every = [node for file in files for node in file.nodes()]
    nodes: dict[str, Json] = {}
    inputs: dict[str, Json] = {}
    pending = _chains(files, said)
    while pending:
        root, *keys = pending.pop()
        if root == "inputs":
            inputs |= {name: value for name, value in known.inputs.items() if not keys or name == keys[0]}
            continue
        roots |= {root, *keys[:1]} if root == "vars" else {root}
        for node in every:
            gives = isinstance(node, Context) if root == "vars" else node.id == root
            if gives and node.id not in nodes:
                nodes[node.id] = _without_checks(node)
                pending += _chains(files, nodes[node.id])
                # A statement of SQL names what it reads as its tables.
                for statement in _statements(nodes[node.id]):
                    pending += [tuple(each.split(".")) for each in _NAMES.findall(statement)]
    return Rests(inputs, nodes, {name: value for name, value in known.pins.items() if name in roots})


def _chains(files: Sequence[workflow.Loaded], said: Json) -> list[tuple[str, ...]]:
    """What these fields read: names, each with the keys behind it."""
    known = (file.templates[text] for text in _texts(said) for file in files if text in file.templates)
    return [tuple(map(str, use.chain)) for each in known for use in each.names]


def _statements(said: Json) -> Iterator[str]:
    """The statements of SQL in the fields of a node, those of the nodes in it too."""
    if isinstance(said, dict):
        for name, each in said.items():
            if name == "sql" and isinstance(each, str):
                yield each
            yield from _statements(each)
    elif isinstance(said, list):
        for each in said:
            yield from _statements(each)


def _without_checks(node: Node) -> Json:
    return node.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(NO_DEED), warnings=False)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def key_of(loaded: workflow.Loaded | None, path: str) -> str:
    """What tells a step from the others of its workflow, whatever turn it is in: its id, behind the groups by which its file is used."""
    found = loaded.find(path) if loaded is not None else None
    if found is None:
        return static(path)
    users = static(found.user)
    if not users:
        return found.node.id
    # Of the path of the group only the groups that use a file count.
    assert loaded is not None
    return f"{key_of(loaded, found.user)}/{found.node.id}"


def _above(loaded: workflow.Loaded | None, path: str) -> Iterator[str]:
    """The keys of the steps above a path."""
    parts = path.split("/")
    for number in range(len(parts) - 1, 0, -1):
        yield key_of(loaded, "/".join(parts[:number]))


def _fields(leaf: Leaf) -> dict[str, Json]:
    """What a deed is given beside its target."""
    said: dict[str, Json] = leaf.model_dump(mode="json", by_alias=True, exclude_defaults=True, warnings=False)
    left_out = {*NO_DEED_OF_AGENT, "id", "type", "action", "target", "goal", "effect"}
    fields = {name: each for name, each in said.items() if name not in left_out and not name.startswith("x-")}
    if leaf.asks == "agent":
        fields["goal"] = said.get("goal")
        fields["tools"] = ", ".join(getattr(leaf, "tools", ()))
    return fields


def _one_line(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = harmless(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
