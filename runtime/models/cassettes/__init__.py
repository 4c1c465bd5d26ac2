"""Recording and replay of a run's model exchanges in a reviewable file. Start with `cassettes.py`; `normal_form.py` compares requests."""
