"""SQL over the logs of all runs and sessions (`runops query`). Used by `cli` alone. Start with `query.py`, then `views.py`."""
