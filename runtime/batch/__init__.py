"""The cases of one command: which there are and are selected, in what order they run, and what becomes of them. Only `cli` imports it.

Start with ``planning``; then ``policy`` (retries, failures, exit codes), ``pool`` and ``worker`` (several processes).
"""
