"""Where logs are kept: the port (``store.py``), the store of files, owners, leases, and what a damaged file still says.

Start with ``store.py``. Another store is one more module here; ``runtime.testing.store_suite`` holds it to the same promises.
"""
