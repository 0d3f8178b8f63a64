"""Ways of asking."""
