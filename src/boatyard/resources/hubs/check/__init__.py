"""The check of a hub: `collect` asks it, `evaluate` compares with `requirements`, `report` says what came of it."""
