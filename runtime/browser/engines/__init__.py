"""Firefox and WebKit: Playwright starts them, and a proxy of ours keeps documents of other origins out."""
