"""Ways of answering the dns port."""
