"""The conversation log: its entries, the writer, and what is folded from it.

Start with ``entries.py`` (the lines), ``writer.py`` (how one is written) and ``history.py`` (a run, folded). Everything above may import it;
it knows messages, secrets and files, and neither engine nor models.
"""
