"""The first tables"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("labels_from", sa.String(length=16), nullable=False),
        sa.Column("upload_key", sa.String(length=200), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=True),
        sa.Column("image_count", sa.Integer(), nullable=False),
        sa.Column("issue_count", sa.Integer(), nullable=False),
        sa.Column("labelled_count", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("error", _JSON, nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_datasets_tenant"), ["tenant"], unique=False)

    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("response", _JSON, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
    )
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_models_tenant"), ["tenant"], unique=False)
        batch_op.create_index("ix_models_tenant_name", ["tenant", "name"], unique=True)

    op.create_table(
        "dataset_issues",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("code", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_dataset_issues_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_issues")),
    )
    with op.batch_alter_table("dataset_issues", schema=None) as batch_op:
        batch_op.create_index(
            "ix_dataset_issues_dataset_id_position", ["dataset_id", "position"], unique=True
        )

    op.create_table(
        "images",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("notes", _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_images_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
    )
    with op.batch_alter_table("images", schema=None) as batch_op:
        batch_op.create_index(
            "ix_images_dataset_id_position", ["dataset_id", "position"], unique=True
        )
        batch_op.create_index(batch_op.f("ix_images_sha256"), ["sha256"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("dataset_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("config", _JSON, nullable=False),
        sa.Column("stages", _JSON, nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("completed", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("rate", sa.Double(), nullable=True),
        sa.Column("timings", _JSON, nullable=False),
        sa.Column("result", _JSON, nullable=True),
        sa.Column("error", _JSON, nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("hints", sa.Integer(), nullable=False),
        sa.Column("hint_at", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_jobs_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("ix_jobs_status_hint_at", ["status", "hint_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_tenant"), ["tenant"], unique=False)

    op.create_table(
        "model_aliases",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_aliases_model_id_models"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "alias", name=op.f("pk_model_aliases")),
    )
    op.create_table(
        "clusterings",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("model_name", sa.String(length=100), nullable=False),
        sa.Column("model_version", sa.Integer(), nullable=False),
        sa.Column("n_clusters", sa.Integer(), nullable=False),
        sa.Column("image_count", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("metrics", _JSON, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_clusterings_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_clusterings_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clusterings")),
        sa.UniqueConstraint("job_id", name=op.f("uq_clusterings_job_id")),
    )
    with op.batch_alter_table("clusterings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_clusterings_tenant"), ["tenant"], unique=False)

    op.create_table(
        "model_versions",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("folder", sa.String(length=200), nullable=False),
        sa.Column("manifest", _JSON, nullable=False),
        sa.Column("files", _JSON, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_model_versions_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_versions_model_id_models"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "version", name=op.f("pk_model_versions")),
        sa.UniqueConstraint("job_id", name=op.f("uq_model_versions_job_id")),
    )
    op.create_table(
        "assignments",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("image_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_assignments_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["image_id"],
            ["images.id"],
            name=op.f("fk_assignments_image_id_images"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("clustering_id", "image_id", name=op.f("pk_assignments")),
    )
    with op.batch_alter_table("assignments", schema=None) as batch_op:
        batch_op.create_index(
            "ix_assignments_clustering_id_cluster_id_image_id",
            ["clustering_id", "cluster_id", "image_id"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_assignments_image_id"), ["image_id"], unique=False)

    op.create_table(
        "clusters",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("mean_probability", sa.Double(), nullable=True),
        sa.Column("examples", _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_clusters_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("clustering_id", "cluster_id", name=op.f("pk_clusters")),
    )


def downgrade() -> None:
    op.drop_table("clusters")
    with op.batch_alter_table("assignments", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_assignments_image_id"))
        batch_op.drop_index("ix_assignments_clustering_id_cluster_id_image_id")

    op.drop_table("assignments")
    op.drop_table("model_versions")
    with op.batch_alter_table("clusterings", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_clusterings_tenant"))

    op.drop_table("clusterings")
    op.drop_table("model_aliases")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_tenant"))
        batch_op.drop_index("ix_jobs_status_hint_at")

    op.drop_table("jobs")
    with op.batch_alter_table("images", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_images_sha256"))
        batch_op.drop_index("ix_images_dataset_id_position")

    op.drop_table("images")
    with op.batch_alter_table("dataset_issues", schema=None) as batch_op:
        batch_op.drop_index("ix_dataset_issues_dataset_id_position")

    op.drop_table("dataset_issues")
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.drop_index("ix_models_tenant_name")
        batch_op.drop_index(batch_op.f("ix_models_tenant"))

    op.drop_table("models")
    op.drop_table("idempotency_keys")
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_datasets_tenant"))

    op.drop_table("datasets")
