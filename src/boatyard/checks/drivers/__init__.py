"""The drivers of the checks port."""
