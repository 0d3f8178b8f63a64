"""${message}"""

from boatyard.ledger.migrations.steps import run

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    run(revision, ())
