"""Services of a leaf beyond the page: files, functions, questions, signed-in states. Start with `leaf_services.py`."""
