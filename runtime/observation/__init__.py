"""Observations: pages as compact text for models. Imports nothing of ``runtime``; the browser and all above import it."""
