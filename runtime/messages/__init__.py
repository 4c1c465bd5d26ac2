"""Requests to models and their answers as data, and token estimates. Imports only `nodes.values`. Start with `messages.py`."""
