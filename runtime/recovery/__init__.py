"""Resume: replay order, changed files, the state of the browser, and what is done again.

Start with ``resume.py``. It works on the engine's ``RunState``; ``runtime.runs`` calls it.
"""
