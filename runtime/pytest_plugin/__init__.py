"""Workflows in pytest: the fixture ``run_workflow``, and the ``tests`` of workflow files as tests (``--runops``)."""
