"""Requests to models and their answers as data, and token estimates. Start with `messages.py`."""
