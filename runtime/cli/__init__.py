"""The command `runops`: one module per command in `commands`, and their common parts. Start with `main.py` and `app.py`."""
