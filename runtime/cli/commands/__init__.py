"""The commands of `runops`, one module each."""
