"""The API seen from outside: where it is, who we are there, its calls. Used by the CLI."""
