"""Tasks of MiniWoB++, each done by a workflow file, and judged by the page itself."""
