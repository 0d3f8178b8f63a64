"""One history of the schema, for alembic. Run by `ledger.schema.migrate`."""
