"""Displays of a run in progress. Of ``runtime`` they import only ``events``; ``language`` and above use them. Start at ``display``."""
