"""How much room an imported version takes"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    size = sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("model_versions", size)


def downgrade() -> None:
    op.drop_column("model_versions", "bytes")
