"""What an observation is made of: the tree that Playwright tells, folding it into a budget, finding in it, and what changed since."""
