"""Workflows on pages that have changed at a resume: killed with their browser at every step, and resumed."""
