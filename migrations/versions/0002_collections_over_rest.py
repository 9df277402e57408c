"""Collections over REST: sources, duplicates, revisions, exports, curves, webhooks"""

import json

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    _create_tables()
    _move_sources_into_jobs()
    _change_datasets()
    _change_jobs()
    _change_clusterings()


def downgrade() -> None:
    _restore_clusterings()
    _restore_jobs()
    _restore_datasets()
    _drop_tables()


def _create_tables() -> None:
    op.create_table(
        "condemned_blobs",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("condemned_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_condemned_blobs")),
    )
    with op.batch_alter_table("condemned_blobs", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_condemned_blobs_condemned_at"), ["condemned_at"], unique=False
        )

    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("attributes", _JSON, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    with op.batch_alter_table("uploads", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_uploads_expires_at"), ["expires_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_uploads_tenant"), ["tenant"], unique=False)

    op.create_table(
        "embeddings",
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("backbone_key", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("folder", sa.String(length=200), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_embeddings_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "dataset_id", "backbone_key", "fingerprint", name=op.f("pk_embeddings")
        ),
    )
    with op.batch_alter_table("embeddings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_embeddings_folder"), ["folder"], unique=False)

    op.create_table(
        "duplicates",
        sa.Column("image_id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("original_id", sa.String(length=40), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_duplicates_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["image_id"],
            ["images.id"],
            name=op.f("fk_duplicates_image_id_images"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["original_id"],
            ["images.id"],
            name=op.f("fk_duplicates_original_id_images"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("image_id", "kind", name=op.f("pk_duplicates")),
    )
    with op.batch_alter_table("duplicates", schema=None) as batch_op:
        batch_op.create_index(
            "ix_duplicates_dataset_id_kind_image_id",
            ["dataset_id", "kind", "image_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_duplicates_original_id"), ["original_id"], unique=False
        )

    op.create_table(
        "job_curves",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("values", _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_job_curves_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "step", name=op.f("pk_job_curves")),
    )
    op.create_table(
        "job_logs",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("level", sa.String(length=8), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_job_logs_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "number", name=op.f("pk_job_logs")),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("body", _JSON, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
            name=op.f("fk_webhook_deliveries_job_id_jobs"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhook_deliveries_job_id"), ["job_id"], unique=False)
        batch_op.create_index(
            "ix_webhook_deliveries_status_due_at", ["status", "due_at"], unique=False
        )

    op.create_table(
        "assignment_changes",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("image_id", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("before", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_assignment_changes_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["image_id"],
            ["images.id"],
            name=op.f("fk_assignment_changes_image_id_images"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "clustering_id", "image_id", "revision", name=op.f("pk_assignment_changes")
        ),
    )
    with op.batch_alter_table("assignment_changes", schema=None) as batch_op:
        batch_op.create_index(
            "ix_assignment_changes_clustering_id_revision",
            ["clustering_id", "revision"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_assignment_changes_image_id"), ["image_id"], unique=False
        )

    op.create_table(
        "clustering_operations",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("arguments", _JSON, nullable=False),
        sa.Column("clusters_before", _JSON, nullable=False),
        sa.Column("moved", sa.BigInteger(), nullable=False),
        sa.Column("undoes", sa.Integer(), nullable=True),
        sa.Column("undone_by", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_clustering_operations_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("clustering_id", "revision", name=op.f("pk_clustering_operations")),
    )
    op.create_table(
        "exports",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=True),
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("format", sa.String(length=24), nullable=False),
        sa.Column("filters", _JSON, nullable=False),
        sa.Column("storage_key", sa.String(length=200), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("media_type", sa.String(length=100), nullable=False),
        sa.Column("image_count", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_exports_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_exports_job_id_jobs"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exports")),
        sa.UniqueConstraint("job_id", name=op.f("uq_exports_job_id")),
    )
    with op.batch_alter_table("exports", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_exports_clustering_id"), ["clustering_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_exports_tenant"), ["tenant"], unique=False)


def _drop_tables() -> None:
    with op.batch_alter_table("exports", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_exports_tenant"))
        batch_op.drop_index(batch_op.f("ix_exports_clustering_id"))

    op.drop_table("exports")
    op.drop_table("clustering_operations")
    with op.batch_alter_table("assignment_changes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_assignment_changes_image_id"))
        batch_op.drop_index("ix_assignment_changes_clustering_id_revision")

    op.drop_table("assignment_changes")
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.drop_index("ix_webhook_deliveries_status_due_at")
        batch_op.drop_index(batch_op.f("ix_webhook_deliveries_job_id"))

    op.drop_table("webhook_deliveries")
    op.drop_table("job_logs")
    op.drop_table("job_curves")
    with op.batch_alter_table("duplicates", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_duplicates_original_id"))
        batch_op.drop_index("ix_duplicates_dataset_id_kind_image_id")

    op.drop_table("duplicates")
    with op.batch_alter_table("embeddings", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_embeddings_folder"))

    op.drop_table("embeddings")
    with op.batch_alter_table("uploads", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_uploads_tenant"))
        batch_op.drop_index(batch_op.f("ix_uploads_expires_at"))

    op.drop_table("uploads")
    with op.batch_alter_table("condemned_blobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_condemned_blobs_condemned_at"))

    op.drop_table("condemned_blobs")


def _move_sources_into_jobs() -> None:
    """An ingest that is still to be done knows its upload from its own job."""
    connection = op.get_bind()
    waiting = connection.execute(
        sa.text(
            "SELECT jobs.id, datasets.upload_key, datasets.labels_from FROM jobs "
            "JOIN datasets ON datasets.id = jobs.dataset_id WHERE jobs.kind = 'ingest'"
        )
    ).all()
    for job_id, key, labels_from in waiting:
        source = {"type": "archive", "key": key, "labels_from": labels_from}
        connection.execute(
            sa.text("UPDATE jobs SET config = :config WHERE id = :id").bindparams(
                sa.bindparam("config", type_=_JSON)
            ),
            {"config": {"source": source, "first_position": 0}, "id": job_id},
        )


def _change_datasets() -> None:
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.add_column(sa.Column("end_position", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("updated_at", sa.Double(), nullable=True))
    op.execute(
        "UPDATE datasets SET updated_at = created_at, end_position = CASE WHEN status = 'ready' "
        "THEN coalesce((SELECT max(position) + 1 FROM images WHERE dataset_id = datasets.id), 0) "
        "ELSE 0 END"
    )
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.alter_column("end_position", nullable=False)
        batch_op.alter_column("updated_at", nullable=False)
        batch_op.drop_column("upload_key")
        batch_op.drop_column("labels_from")
    with op.batch_alter_table("images") as batch_op:
        batch_op.add_column(sa.Column("attributes", _JSON, nullable=False, server_default="{}"))
        batch_op.create_index(
            "ix_images_dataset_id_sha256_position",
            ["dataset_id", "sha256", "position"],
            unique=False,
        )
    with op.batch_alter_table("images") as batch_op:
        batch_op.alter_column("attributes", server_default=None)


def _restore_datasets() -> None:
    with op.batch_alter_table("images") as batch_op:
        batch_op.drop_index("ix_images_dataset_id_sha256_position")
        batch_op.drop_column("attributes")
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.add_column(
            sa.Column("labels_from", sa.String(16), nullable=False, server_default="none")
        )
        batch_op.add_column(
            sa.Column("upload_key", sa.String(200), nullable=False, server_default="")
        )
        batch_op.drop_column("updated_at")
        batch_op.drop_column("end_position")
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.alter_column("labels_from", server_default=None)
        batch_op.alter_column("upload_key", server_default=None)


def _change_jobs() -> None:
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("webhook_url", sa.Text(), nullable=True))
        batch_op.create_index(
            "ix_jobs_status_priority_id", ["status", "priority", "id"], unique=False
        )
        batch_op.create_index("ix_jobs_dataset_id_status", ["dataset_id", "status"], unique=False)
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.alter_column("priority", server_default=None)


def _restore_jobs() -> None:
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.drop_index("ix_jobs_dataset_id_status")
        batch_op.drop_index("ix_jobs_status_priority_id")
        batch_op.drop_column("webhook_url")
        batch_op.drop_column("priority")


def _change_clusterings() -> None:
    for table in ("clusterings", "model_versions"):
        _job_reference(table, nullable=True, ondelete="SET NULL")
    with op.batch_alter_table("clusterings") as batch_op:
        batch_op.add_column(sa.Column("dataset_fingerprint", sa.String(64), nullable=True))
        batch_op.add_column(sa.Column("embedding_folder", sa.String(200), nullable=True))
        batch_op.create_index(batch_op.f("ix_clusterings_dataset_id"), ["dataset_id"], unique=False)
    with op.batch_alter_table("clusters") as batch_op:
        batch_op.add_column(
            sa.Column("active", sa.Boolean(), nullable=False, server_default=sa.true())
        )
        batch_op.drop_column("examples")
    with op.batch_alter_table("clusters") as batch_op:
        batch_op.alter_column("active", server_default=None)
    with op.batch_alter_table("assignments") as batch_op:
        batch_op.add_column(sa.Column("margin", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("distance", sa.Double(), nullable=True))
    # Older clusterings did not keep these two: the probability is the best guess there is.
    op.execute("UPDATE assignments SET margin = probability, distance = 1.0 - probability")
    with op.batch_alter_table("assignments") as batch_op:
        batch_op.alter_column("margin", nullable=False)
        batch_op.alter_column("distance", nullable=False)
        for measure in ("probability", "margin", "distance"):
            batch_op.create_index(
                f"ix_assignments_by_{measure}",
                ["clustering_id", "cluster_id", measure],
                unique=False,
            )


def _restore_clusterings() -> None:
    with op.batch_alter_table("assignments") as batch_op:
        for measure in ("probability", "margin", "distance"):
            batch_op.drop_index(f"ix_assignments_by_{measure}")
        batch_op.drop_column("distance")
        batch_op.drop_column("margin")
    with op.batch_alter_table("clusters") as batch_op:
        batch_op.add_column(
            sa.Column("examples", _JSON, nullable=False, server_default=json.dumps([]))
        )
        batch_op.drop_column("active")
    with op.batch_alter_table("clusters") as batch_op:
        batch_op.alter_column("examples", server_default=None)
    with op.batch_alter_table("clusterings") as batch_op:
        batch_op.drop_index(batch_op.f("ix_clusterings_dataset_id"))
        batch_op.drop_column("embedding_folder")
        batch_op.drop_column("dataset_fingerprint")
    for table in ("clusterings", "model_versions"):
        op.execute(f"DELETE FROM {table} WHERE job_id IS NULL")  # noqa: S608 - names of ours
        _job_reference(table, nullable=False, ondelete="CASCADE")


def _job_reference(table: str, *, nullable: bool, ondelete: str) -> None:
    name = op.f(f"fk_{table}_job_id_jobs")
    with op.batch_alter_table(table) as batch_op:
        batch_op.alter_column("job_id", existing_type=sa.String(40), nullable=nullable)
        batch_op.drop_constraint(name, type_="foreignkey")
        batch_op.create_foreign_key(name, "jobs", ["job_id"], ["id"], ondelete=ondelete)
