"""Checks of a workflow file: fields and types, names and references, declarations, tabs."""
