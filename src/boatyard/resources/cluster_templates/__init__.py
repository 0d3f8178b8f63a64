"""Cluster templates: what may be ordered."""
