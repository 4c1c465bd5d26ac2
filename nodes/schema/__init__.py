"""JSON Schemas of authors, and answers of models that must fit them. Start at `output.Output`. Imports only modules of `nodes`."""
