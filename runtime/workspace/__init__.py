"""Runs and sessions of a project: lists, claims, pruning. Imports `log`, `browser` and layers below. Start with `run_index.py`."""
