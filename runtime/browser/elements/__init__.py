"""Elements of a page: their facts, targets that find them, and rules about them."""
