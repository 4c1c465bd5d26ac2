"""The command `runops`: one module per command in `commands`. Only the Director imports it. Start with `main.py` and `app.py`."""
