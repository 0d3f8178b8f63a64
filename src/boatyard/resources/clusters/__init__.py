"""Clusters: what tenants order."""
