"""The runs and sessions of a project's home: lists, claims, active processes, and pruning. Start with `run_index.py`, then `host.py`."""
