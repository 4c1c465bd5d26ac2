"""Where nodes of the draft are tried: ``execute_nodes``."""

from director.bench.bench import Bench
from director.bench.tools import kits

__all__ = ["Bench", "kits"]
