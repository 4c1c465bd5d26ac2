"""A conversation on a terminal: input, slash commands, runs that it follows. Start at `foreground`."""
