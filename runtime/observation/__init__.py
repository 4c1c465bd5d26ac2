"""A page as compact text for a model: its tree, the lines of it, what is found and what has changed.

Start with ``observation.py``. Pure: the browser gives a snapshot, and this package words it.
"""
