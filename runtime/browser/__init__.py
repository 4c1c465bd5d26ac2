"""The browser behind one port: finding it, starting it, guarding it, and the tab as a node sees it."""
