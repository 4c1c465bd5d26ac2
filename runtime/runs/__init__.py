"""Starting, resuming, answering and following runs, alone or many in one process.

May import all of `runtime` but `report` and `cli`; these two and the Director import it. Start with `start.py` and `run.py`.
"""
