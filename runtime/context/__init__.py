"""Building of model requests: briefs, the window of a thread, summaries, and reports. Start with `request.py`, then `window.py`."""
