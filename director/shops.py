"""Opens the workshop of a build: over the log that it writes, or one that is only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from director import build_subject, kits, person, session_settings, starting, workshop
from director import desk as desks
from director.listening import Listener
from nodes.values import Json
from runtime.log import session, writer
from runtime.secrets import sources
from runtime.workspace import host


def of_session(
    pen: writer.Journal[session.Session],
    desk: desks.Desk,
    here: host.Host,
    listener: Listener,
    who: person.Person,
    price: starting.Price,
) -> workshop.Workshop:
    """The workshop of a build whose wish stands in the log; nothing is opened or written yet. ``here`` has the settings of its runs, ``who`` answers questions."""
    header = pen.history.header
    assert header is not None
    assert header.build is not None, "a build says in its first line what it is to reach"
    wish = session_settings.wished(workshop.Wish.of(header.build), desk)

    def known() -> Mapping[str, str]:
        draft = desk.draft
        declared = draft.loaded.workflow.secrets if draft is not None else ()
        return sources.known(here.secrets, [*wish.secrets, *declared], wish.place.parent)

    shop = workshop.Workshop(
        pen=pen,
        desk=desk,
        here=here,
        listener=listener,
        wish=wish,
        person=person.Remembering(pen, who),
        runs=starting.Runs(pen, here.kept, listener, price),
        known=known,
    )
    kits.furnish(shop)
    return shop


def subject_of(shop: workshop.Workshop) -> build_subject.BuildSubject:
    """What the build is about, as its bench and its tabs are at each moment."""
    return build_subject.BuildSubject(
        shop.desk, shop.wish, lambda: _values(shop), lambda: _states(shop), lambda: _tabs(shop)
    )


def _values(shop: workshop.Workshop) -> Mapping[str, Json]:
    return shop.bench.values()


def _states(shop: workshop.Workshop) -> Mapping[str, str]:
    return shop.bench.marks()


def _tabs(shop: workshop.Workshop) -> Sequence[str]:
    """A line for each tab: in which browser, its name, and whether it is the one that is meant where none is named."""
    lines: list[str] = []
    for each in shop.eyes.tabs():
        name = "/".join(filter(None, (each.where, each.name)))
        title = f' "{each.title}"' if each.title else ""
        lines.append(f"- {name}{' (current)' if each.current else ''} {each.url}{title}")
    return lines
