"""Leftovers: what a deletion could not take back in time."""
