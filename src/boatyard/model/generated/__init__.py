"""Made by tools/generate.py from proto/; not edited."""
