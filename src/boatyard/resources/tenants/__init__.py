"""Tenants: customers, isolated from each other."""
