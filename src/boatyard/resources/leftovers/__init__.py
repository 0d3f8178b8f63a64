"""Leftovers: items that a deletion could not release in time."""
