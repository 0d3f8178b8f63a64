"""Cluster templates: the catalogue that tenants order from."""
