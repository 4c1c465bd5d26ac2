"""Expressions in ``{{ }}``: parsing, sandbox, filters, limits, and the names that one reads. Start with ``references.py``."""
