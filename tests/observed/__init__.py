"""Pages that observations are proved on: a table of 1,000 elements, and tasks of MiniWoB."""
