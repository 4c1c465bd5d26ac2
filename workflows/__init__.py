"""Example workflows and the demo site they run on."""
