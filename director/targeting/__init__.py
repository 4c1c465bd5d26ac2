"""Proposes targets for an element that a model points at, proved to hold when the page is reloaded and rows are added.

Start at `proof`. May import `proving` and the layers below; only `builds` and `cli` import it.
"""
