"""Ways of keeping orders."""
