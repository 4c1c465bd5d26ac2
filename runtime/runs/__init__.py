"""Start, resume, answer and follow runs, alone or many in one process. Only `cli` and `report` may import this package.

Start with `start.py`, then `run.py`; programs use `runtime.Runtime`.
"""
