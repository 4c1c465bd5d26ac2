"""Turns with a model that has tools. Start with `turn.py`."""
