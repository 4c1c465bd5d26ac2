"""Browser of a run: finds, starts and guards Chromium, and implements the tab that nodes work with.

It may import log-level packages and below: secrets, system, messages, observation. Engine, services and the CLI import it.
Start reading at ``port`` (the interface), then ``open``, ``session`` and ``page/tab``.
"""
