"""A browser in which a session observes the site, outside the workflow, and the actions allowed there.

Start at `observer` and `actions`. May import `conversation`, `editing` and `repair` and the layers below.
"""
