"""The client of OpenAI's API, its errors, parsing, polling, and probing of servers. Start with `client.py`."""
