"""The shop: a small order desk on loopback, for demos, docs and tests.

Start it with `runops demo-site` or `python -m workflows.shop`. It stores everything in one SQLite file, writes a ledger
row for every side effect, and can be made to misbehave (`switches`). It does not prevent paying twice: the ledger shows
that it happened.
"""
