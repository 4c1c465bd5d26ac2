"""Requests to models and their answers, with budgets, model selection and cassettes. Start with `requests.py`, then `budgets.py`.

Imports `nodes`, `language` and the layers below, never `engine` or above. Only ``client.client`` imports the API's client.
"""
