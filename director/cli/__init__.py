"""The commands of the Director, as entry points of the group ``runops.commands``."""
