"""Opens and runs a build.

Start at `loop.Build`. Imports every other package of `director` but `cli`, which uses it.
"""
