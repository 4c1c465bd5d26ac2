"""Proposes targets for an element that a model points at, proved to hold when the page is reloaded and rows are added.

Start at `proof`. Imports `proving` and the layers below; only `builds` and `cli` import it.
"""
