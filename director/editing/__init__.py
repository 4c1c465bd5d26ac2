"""Tools that edit the draft as text, so that the rest stays as written, with checks and hints.

Start at `tools`. Imports `tools` and the layers below; `conversation` and `repair` are on the same level.
"""
