"""Drivers of the platform port."""
