"""Diagnosis of failed runs, and fixes proved in copies of the run.

Start at `repair`. May import `tools`, `effects`, `subjects` and the layers below; `conversation` and `editing` are on the same level.
"""
