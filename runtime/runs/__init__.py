"""Runs of workflows: start, resume, answer, follow. Imported by `report`, `cli` and the Director. Start with `start.py`, then `run.py`."""
