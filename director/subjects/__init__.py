"""Subjects of a session: a run, a workflow file, a draft. Start at `files`. May import `session` and `draft`."""
