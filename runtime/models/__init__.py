"""Requests to models and their answers, with budgets, model selection and cassettes.

A *request* is one question with everything sent along; an *exchange* is a request with its complete final response.
Imports `nodes`, `language` and the layers below, never `engine` or above. Only ``client.client`` imports the API's client.
Start with `requests.py`, then `budgets.py`.
"""
