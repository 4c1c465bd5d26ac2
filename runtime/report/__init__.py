"""Reports of runs and sessions as typed data, for text, JSON, Markdown and HTML. Only `cli` and the Director import it.

Start with ``models``. ``of_run`` and ``of_session`` build them from a history. ``text``, ``session_text``, ``markdown``, ``html`` and ``page`` render them,
and may not import logs or stores. ``endings`` is what commands print when they end.
"""
