"""SQL over the logs of all runs and sessions (`runops query`). Start with `query.py`, then `views.py`."""
