"""When a version of a model was last asked for"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model_versions", sa.Column("served_at", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("model_versions", "served_at")
