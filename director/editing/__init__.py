"""Tools that edit the draft as text, so that the rest stays as written, with checks and hints.

Start at `tools`. May import `tools` and the layers below; `conversation` and `repair` are on the same level.
"""
