"""The commands of the Director, as entry points of the group ``runops.commands``.

Start at `build`, `chat` and `repair`. May import every other package of `director`; nothing imports it.
"""
