"""Reviews of images by people"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("image_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("belongs_to", sa.Integer(), nullable=True),
        sa.Column("stratum", sa.Integer(), nullable=True),
        sa.Column("reviewed_by", sa.String(length=200), nullable=True),
        sa.Column("reviewed_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_reviews_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["image_id"],
            ["images.id"],
            name=op.f("fk_reviews_image_id_images"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("clustering_id", "image_id", name=op.f("pk_reviews")),
    )
    op.create_index(op.f("ix_reviews_image_id"), "reviews", ["image_id"], unique=False)
    op.create_index(
        "ix_reviews_clustering_id_cluster_id",
        "reviews",
        ["clustering_id", "cluster_id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index("ix_reviews_clustering_id_cluster_id", table_name="reviews")
    op.drop_index(op.f("ix_reviews_image_id"), table_name="reviews")
    op.drop_table("reviews")
