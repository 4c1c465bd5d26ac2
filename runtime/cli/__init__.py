"""The command `runops`: one module for each of its commands, and what they share."""
