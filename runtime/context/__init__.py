"""Model requests: briefs, windows, summaries. Used by `agents`, `services`, `report`, `cli` and the Director. Start with `request.py`."""
