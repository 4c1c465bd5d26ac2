"""Side effects of a workflow: which leaves have one, how a person is asked for each, and the answers.

Start at `grants.Grants`. May import `session` and `draft`; all packages above those may import it.
"""
