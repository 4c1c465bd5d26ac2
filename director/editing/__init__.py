"""The draft edited: nodes added, changed, moved and taken away as text, so that everything else stays as it was written."""
