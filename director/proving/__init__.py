"""Proves a draft by runs of the whole, and ends a build with its files.

Start at `finish`. Imports `scouting` and every layer below; `bench`, `targeting`, `builds` and `cli` import it.
"""
