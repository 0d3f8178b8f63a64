"""Cluster versions: what may be installed."""
