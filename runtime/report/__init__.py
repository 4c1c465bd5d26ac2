"""Reports: what happened in a run or a session, as typed data from which text, JSON and Markdown are made.

Begin with ``models``. ``of_run`` and ``of_session`` make the models from a history; ``text``, ``session_text`` and
``markdown`` render them and know nothing else; ``endings`` is what commands print when they end; ``schemas`` publishes all of it.
"""
