"""Done means proved: runs of the whole draft, what they have shown of each action, and the end of a build with what it leaves."""
