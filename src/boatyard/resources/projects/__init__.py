"""Projects: groups of a tenant's resources."""
