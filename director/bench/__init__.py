"""Where nodes of the draft are tried: ``execute_nodes``."""

from director.bench.bench import Bench
from director.bench.tools import toolsets

__all__ = ["Bench", "toolsets"]
