"""The Director: sessions in which a person and a model talk about runs and workflows, and build them.

It imports ``runtime`` and ``nodes``. Neither imports it: its commands are entry points of the group ``runops.commands``. Layers, top to
bottom, are in pyproject.toml; start at `director.session`, then `director.conversation` and `director.builds`.
"""
