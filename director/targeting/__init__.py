"""Proposes targets for an element that a model points at, proved on the page, after a reload, and with more rows.

Start at `proof`. May import `proving` and the layers below; only `builds` and `cli` import it.
"""
