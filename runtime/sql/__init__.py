"""SELECT over values, executed by DuckDB in a separate process. Imports nothing else of ``runtime``. Start reading at ``select``."""
