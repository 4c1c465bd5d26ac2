"""Reports of many runs, for CI servers and people.

``composing`` makes one model of all cases, ``BatchReport``; ``junit``, ``github`` and ``summary`` render it, ``merging`` joins several.
``writing`` keeps the files up to date while the cases run; start reading there.
"""
