"""Images that models have refused, and the groups that are proposed of them"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "proposals",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("tightness", sa.Double(), nullable=False),
        sa.Column("suggested_cluster_id", sa.Integer(), nullable=True),
        sa.Column("center", sa.Text(), nullable=True),
        sa.Column("clustering_id", sa.String(length=40), nullable=True),
        sa.Column("cluster_id", sa.Integer(), nullable=True),
        sa.Column("new_cluster", sa.String(length=200), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("decided_by", sa.String(length=200), nullable=True),
        sa.Column("decided_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            name=op.f("fk_proposals_model_id_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposals")),
    )
    op.create_index("ix_proposals_model_id_version", "proposals", ["model_id", "version"])
    op.create_index(op.f("ix_proposals_tenant"), "proposals", ["tenant"])
    op.create_table(
        "refused_images",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("image_id", sa.String(length=40), nullable=True),
        sa.Column("proposal_id", sa.String(length=40), nullable=True),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("gathered", sa.Boolean(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("novelty", sa.Double(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.Column("margin", sa.Double(), nullable=False),
        sa.Column("features", sa.Text(), nullable=False),
        sa.Column("kept_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["image_id"],
            ["images.id"],
            name=op.f("fk_refused_images_image_id_images"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            name=op.f("fk_refused_images_model_id_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["proposal_id"],
            ["proposals.id"],
            name=op.f("fk_refused_images_proposal_id_proposals"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refused_images")),
    )
    op.create_index(
        "ix_refused_images_model_id_version_sha256",
        "refused_images",
        ["model_id", "version", "sha256"],
        unique=True,
    )
    for column in ("tenant", "image_id", "proposal_id", "sha256"):
        op.create_index(op.f(f"ix_refused_images_{column}"), "refused_images", [column])


def downgrade() -> None:
    op.drop_table("refused_images")
    op.drop_table("proposals")
