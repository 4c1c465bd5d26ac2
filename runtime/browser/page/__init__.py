"""A tab as a node sees it: actions, reads, dialogs, downloads, screenshots, and looks at the page.

Start with ``tab.py``, which is made of the others. ``tabs.py`` keeps all tabs of a run.
"""
