"""The bench, where ``execute_nodes`` runs nodes of the draft.

Start at `bench.Bench`. May import every package of `director` but `cli`, `builds` and `targeting`; `builds` and `cli` import it.
"""
