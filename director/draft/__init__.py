"""Edits of the workflow that a session builds, as text, and the files that a build writes.

Start at `draft.Draft`. Imports no other package of `director`; all of them may import it.
"""
