"""A run that failed, looked into: what it failed of, and what would mend it."""
