"""What runs of templates' roles have told."""

from boatyard.ledger.migrations.steps import run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run(revision, ("stories",))
