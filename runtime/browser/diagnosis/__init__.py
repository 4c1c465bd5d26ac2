"""Diagnosis of failures on a page, with evidence from the page."""
