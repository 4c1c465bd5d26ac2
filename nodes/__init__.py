"""The vocabulary of RunOps: one file per node type, the node model, and the ports a node needs. Imports neither runtime nor director."""
