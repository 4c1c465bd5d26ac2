"""Opens and runs a build. Start at `loop.to_its_end`. May import every other package of `director` but `cli`, which uses it."""
