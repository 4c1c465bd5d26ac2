"""The conversation of a session: a person's messages, the model's turns with tools, and subagents.

Start at `reply.Talk`. May import `tools` and the layers below; `editing` and `repair` are on the same level.
"""
