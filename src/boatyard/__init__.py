"""Boatyard: from an order for a cluster to a running one, and back to nothing left behind."""

__version__ = "0.1.0.dev0"
