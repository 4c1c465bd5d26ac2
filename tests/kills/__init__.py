"""A checkout on the shop, killed at every crash point, and resumed: ``make crash``."""
