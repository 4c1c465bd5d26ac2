"""Options, screen and endings of builds and repairs on a terminal. Start at `foreground`."""
