"""The Chromium process of a run: found, launched, watched, and found again after a crash. Start with ``launch.py``."""
