"""Tools of a session: their protocol, the toolbox of one model, and the build context that the tools of a build share.

Start at `toolbox.Toolset` and `build_context.BuildContext`. May import `effects`, `session` and `draft`.
"""
