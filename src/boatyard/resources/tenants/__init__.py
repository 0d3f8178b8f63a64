"""Tenants: strangers to each other."""
