"""Services of a leaf beyond the page: files, functions, questions. Used by `runs`, `cli` and the Director. Start with `leaf_services.py`."""
