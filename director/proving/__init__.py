"""Proves a draft by runs of the whole, and ends a build with its files.

Start at `finish`. May import `scouting` and every layer below; `bench`, `targeting`, `builds` and `cli` import it.
"""
