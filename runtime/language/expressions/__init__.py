"""Expressions in ``{{ … }}``: parsing, filters, evaluation within limits, and the names that they read."""
