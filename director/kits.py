"""A build's workshop furnished, and the tools that it has beside those of every session."""

from __future__ import annotations

from collections.abc import Sequence

from director import asking, bench, eyes, grants
from director.editing import tools as editing
from director.proving import tools as proving
from director.scouting import scout
from director.scouting import tools as scouting
from director.targeting import tools as targeting
from director.tools import Kit
from director.workshop import Workshop


def furnish(shop: Workshop) -> None:
    """Put into the workshop what its tools work with. Nothing is opened yet."""
    shop.eyes = eyes.Eyes(shop)
    shop.effects = grants.Grants(shop)
    shop.bench = bench.Bench(shop)


def kits(shop: Workshop) -> Sequence[Kit]:
    """The tools of a build, in order of weight."""
    return (
        *asking.kits(shop),
        *editing.kits(shop),
        *bench.kits(shop),
        *targeting.kits(shop),
        *scouting.kits(shop),
        *scout.kits(shop),
        *proving.kits(shop),
    )
