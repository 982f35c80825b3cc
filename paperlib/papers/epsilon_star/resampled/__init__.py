"""Models with training sets of their own, and both sides of Theorem 2 over them."""
