"""The scout: a browser in which a build looks at the site, outside the workflow, and acts there.

Start at `observer` and `actions`. May import `conversation`, `editing`, `repair` and the layers below.
"""
