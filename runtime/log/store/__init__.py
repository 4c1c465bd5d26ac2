"""Storage of logs: the port (``store.py``), the store of files, owners, leases, and the integrity of a log file.

Start with ``store.py``. Another store is one more module here; ``runtime.testing.store_suite`` holds it to the same promises.
"""
