"""A session's log, state (plan, description, draft, variables), settings and prompts.

Start at `state.SessionState` and `open`. May import `director.draft`; all packages but that one may import it.
"""
