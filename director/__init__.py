"""The Director: sessions in which a person and a model talk about runs and workflows, and build them.

It imports ``runtime`` and ``nodes``, and nothing imports it: its commands are entry points of the group ``runops.commands``.
"""
