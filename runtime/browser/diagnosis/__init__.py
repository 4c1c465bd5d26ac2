"""From what went wrong on a page to an error with evidence. Start with ``diagnosis.py``."""
