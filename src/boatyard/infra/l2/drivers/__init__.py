"""Ways of answering the l2 port."""
