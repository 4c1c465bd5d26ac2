"""Targets by proof: for an element that a model points at, the ways to find it that hold when the page is loaded again and rows are added."""
