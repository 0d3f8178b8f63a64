"""Ways of answering the automation port."""
