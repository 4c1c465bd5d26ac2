"""The run loop: nodes in order, one step, one attempt, and what is done about a side effect that may have happened.

Start with ``engine.py`` (run, block, node), then ``steps.py`` and ``attempt.py``; ``reconcile.py`` is for after a crash. All of them share
one ``RunState``. What a leaf uses beyond the page is handed in by ``runtime.runs``: the engine knows no models, no agents and no SQL.
"""
