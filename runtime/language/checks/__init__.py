"""Static checks of a workflow file, each with the place of every mistake. ``sql.py`` is for ``runops validate`` only. Start with ``names.py``."""
