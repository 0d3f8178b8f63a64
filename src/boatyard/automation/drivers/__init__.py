"""Drivers of the automation port."""
