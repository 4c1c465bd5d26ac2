"""Language of workflow files: reads, checks and compiles them, and reports each mistake with its place.

It may import log, browser, display, settings and the packages below them. Models, engine, recovery and the CLI import it.
Start reading at ``reader``, then ``node_tree``, ``checks`` and ``expressions``.
"""
