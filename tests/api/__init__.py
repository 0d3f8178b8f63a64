"""The API over both of its doors, on a real PostgreSQL."""
