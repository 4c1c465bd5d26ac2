"""Proves a draft by runs of the whole, and writes the files at the end of a build.

Start at `finish`. May import `scouting` and every layer below; `bench`, `targeting`, `builds` and `cli` import it.
"""
