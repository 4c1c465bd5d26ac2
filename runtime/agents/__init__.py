"""A model that works on the page: its tools, their execution, and the export of its actions as nodes. Start with `agent.py`."""
