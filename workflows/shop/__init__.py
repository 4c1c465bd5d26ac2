"""The shop: a small order desk on loopback, for demos, docs and tests.

Start it with `runops demo-site` or `python -m workflows.shop`. It keeps everything in one SQLite file, writes a ledger
row for every side effect (and protects nobody from paying twice: that is what the ledger is there to show), and can be
told to misbehave (`switches`).
"""
