"""Tools that edit the draft as text, with checks and hints; the rest of the text stays as written.

Start at `tools`. May import `tools` and the layers below; `conversation` and `repair` are on the same level.
"""
