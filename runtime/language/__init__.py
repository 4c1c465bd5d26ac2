"""Language of workflow files: reads, checks and compiles them, and reports each mistake with its place.

It may import log, browser, display, settings and all below; ``models`` and above use it. Start reading at ``reader``.
"""
