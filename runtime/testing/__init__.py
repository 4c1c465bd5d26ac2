"""Helpers for tests of programs that use RunOps, and of stores: a store in memory, and a test suite for stores. See ``docs/testing.md``."""

from runtime.testing.memory_store import MemoryStore

__all__ = ["MemoryStore"]
