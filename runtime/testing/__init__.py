"""Test helpers for stores and for programs that use RunOps, which itself does not import them. See ``docs/testing.md``."""

from runtime.testing.memory_store import MemoryStore

__all__ = ["MemoryStore"]
