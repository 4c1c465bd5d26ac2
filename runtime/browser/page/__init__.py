"""Tab as a node sees it: actions, readings, observations, screenshots, dialogs and downloads."""
