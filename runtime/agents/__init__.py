"""Agents on the page: their tools, and export as nodes. Used by `runs`, `cli` and the Director. Start with `agent.py`."""
