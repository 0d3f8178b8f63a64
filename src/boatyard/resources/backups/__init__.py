"""Backups: copies of all objects of a cluster, which outlive it."""
