"""Scouting: a browser beside the workflow, in which a session looks around, and what it may do there."""
