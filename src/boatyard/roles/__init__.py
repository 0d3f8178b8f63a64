"""Roles that are templates: their folder, their form, their content. Knows nothing of the rest of the house."""
