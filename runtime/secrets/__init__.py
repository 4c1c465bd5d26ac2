"""Secrets: where their values come from (``sources.py``), and how they are masked in all that a run writes (``masking.py``)."""
