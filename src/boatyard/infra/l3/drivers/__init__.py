"""Ways of answering the l3 port."""
