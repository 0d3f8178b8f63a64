"""Ways of answering the inventory port."""
