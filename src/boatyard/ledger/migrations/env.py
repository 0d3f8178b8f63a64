"""Alembic's entry: runs the migrations on the connection that `ledger.schema.migrate` brings."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], transaction_per_migration=True
)
context.run_migrations()
