"""The language of workflow files: read, checked and compiled, with a place for every mistake."""
