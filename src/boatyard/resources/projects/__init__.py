"""Projects: where a tenant keeps things apart."""
