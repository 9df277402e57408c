"""Calibrations of model versions, and counts of their predictions"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_calibrations",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("slope", sa.Double(), nullable=False),
        sa.Column("intercept", sa.Double(), nullable=False),
        sa.Column("reviews", sa.Integer(), nullable=False),
        sa.Column("error_before", sa.Double(), nullable=False),
        sa.Column("error_after", sa.Double(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            name=op.f("fk_model_calibrations_model_id_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "model_id", "version", "number", name=op.f("pk_model_calibrations")
        ),
    )
    op.create_table(
        "prediction_counts",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("images", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            name=op.f("fk_prediction_counts_model_id_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "model_id", "version", "day", "kind", "bucket", name=op.f("pk_prediction_counts")
        ),
    )


def downgrade() -> None:
    op.drop_table("prediction_counts")
    op.drop_table("model_calibrations")
