"""Chromium as a process: find it, start it with Playwright's driver, watch it, and find one that outlived its run."""
