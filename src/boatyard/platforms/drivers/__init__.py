"""Ways of answering the platform port."""
