"""Bugs that a proof must find, each planted in a process of the product."""
