"""The vocabulary of RunOps: one file per node type, the node model, and the ports that nodes need.

Start at `base`. Imports neither `runtime` nor `director`; both may import it.
"""
