"""The cases of one command: which there are, which are selected, in what order they run, and what becomes of them."""
