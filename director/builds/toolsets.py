"""A build's workshop furnished, and the tools that it has beside those of every session."""

from __future__ import annotations

from collections.abc import Sequence

from director import bench
from director.editing import tools as editing
from director.effects import grants
from director.proving import tools as proving
from director.scouting import observer, scout
from director.scouting import tools as scouting
from director.targeting import tools as targeting
from director.tools import ask_user
from director.tools.build_context import Workshop
from director.tools.toolbox import Kit


def furnish(shop: Workshop) -> None:
    """Put into the workshop what its tools work with. Nothing is opened yet."""
    shop.eyes = observer.Eyes(shop)
    shop.effects = grants.Grants(shop.pen, shop.desk, shop.wish, shop.person)
    shop.bench = bench.Bench(shop)


def kits(shop: Workshop) -> Sequence[Kit]:
    """The tools of a build, in order of weight."""
    return (
        *ask_user.kits(shop),
        *editing.kits(shop),
        *bench.kits(shop),
        *targeting.kits(shop),
        *scouting.kits(shop),
        *scout.kits(shop),
        *proving.kits(shop),
    )
