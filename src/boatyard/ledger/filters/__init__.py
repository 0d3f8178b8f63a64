"""Filters: CEL text to one small typed tree, with two back-ends. Begin at compile.py."""
