"""RunOps' own DevTools connection: the guard of origins, emulation, and downloads. Start with ``connection.py``."""
