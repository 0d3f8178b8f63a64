"""Hubs: the management clusters that carry out orders."""
