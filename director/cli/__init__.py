"""The commands of the Director, as entry points of the group ``runops.commands``.

Start at `build`, `chat` and `repair`. Imports every other package of `director`; nothing imports it.
"""
