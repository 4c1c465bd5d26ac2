"""Settings from the environment, ``.env``, pyproject.toml and flags, with the addresses and prices that they hold. Start with ``settings.py``."""
