"""For tests of programs that use RunOps, and of stores: a store in memory, and what every store must do. ``docs/testing.md`` tells how to use it."""

from runtime.testing.memory_store import MemoryStore

__all__ = ["MemoryStore"]
