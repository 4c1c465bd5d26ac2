"""Workflows on pages that a resume finds changed: killed with their browser at every step, and resumed."""
