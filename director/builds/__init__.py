"""Opens and runs a build. Start at `loop.Build`. May import every other package of `director` but `cli`, which uses it."""
