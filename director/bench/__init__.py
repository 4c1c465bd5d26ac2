"""The bench, where ``execute_nodes`` runs nodes of the draft.

Start at `bench.Bench`. May import every package of `director` but `cli`, `builds` and `targeting`; `builds` and `cli` import it.
"""

from director.bench.bench import Bench
from director.bench.tools import toolsets

__all__ = ["Bench", "toolsets"]
