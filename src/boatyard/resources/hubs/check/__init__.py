"""The check of a hub: `collect` reads it, `evaluate` compares with `requirements`, `report` builds the result."""
