"""A checkout on the shop, killed at every moment that has a name, and resumed: ``make crash``."""
