"""Writes workflows as plain Playwright tests in Python, which need no RunOps."""
