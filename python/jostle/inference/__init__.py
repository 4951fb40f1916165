"""What measurements tell: who sent them, over which network, and what would change them."""
