"""Turns the descriptors of proto/ into what is made from them. Called by tools/generate.py."""
