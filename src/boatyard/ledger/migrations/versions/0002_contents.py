"""Contents of templates' roles."""

from boatyard.ledger.migrations.steps import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run(revision, ("contents",))
