"""A model that works on the page: the tools it has, how they are done and told of, and what it did as nodes of a file."""
