"""Browser of a run: finds, starts and guards Chromium, and implements the tab that nodes work with.

Of ``runtime`` it imports only ``observation`` and ``system``. Start at ``port``, then ``open``, ``session``, ``page/tab``.
"""
