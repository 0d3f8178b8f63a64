"""Documents, events, claims, work."""

from boatyard.ledger.migrations.steps import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    run(revision, ("tables", "commit", "claim", "events"))
