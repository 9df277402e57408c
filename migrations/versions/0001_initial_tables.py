"""Initial tables"""

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
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", _JSON, nullable=False),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("storage_bytes", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("sha256", name=op.f("uq_api_keys_sha256")),
    )
    op.create_index(op.f("ix_api_keys_tenant"), "api_keys", ["tenant"], unique=False)
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.Column("key_name", sa.String(length=200), nullable=True),
        sa.Column("method", sa.String(length=8), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("request_id", sa.String(length=100), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_index("ix_audit_entries_tenant_id", "audit_entries", ["tenant", "id"], unique=False)
    op.create_table(
        "blob_deletions",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("scheduled_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blob_deletions")),
    )
    op.create_index(
        op.f("ix_blob_deletions_scheduled_at"), "blob_deletions", ["scheduled_at"], unique=False
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=True),
        sa.Column("end_position", sa.Integer(), nullable=False),
        sa.Column("image_count", sa.Integer(), nullable=False),
        sa.Column("issue_count", sa.Integer(), nullable=False),
        sa.Column("skipped", _JSON, nullable=False),
        sa.Column("labeled_count", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("current_clustering_id", sa.String(length=40), nullable=True),
        sa.Column("error", _JSON, nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    op.create_index(op.f("ix_datasets_tenant"), "datasets", ["tenant"], unique=False)
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
        sa.Column("last_number", sa.Integer(), nullable=False),
        sa.Column("latest_version", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
    )
    op.create_index(op.f("ix_models_tenant"), "models", ["tenant"], unique=False)
    op.create_index("ix_models_tenant_name", "models", ["tenant", "name"], unique=True)
    op.create_table(
        "retention_locks",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_retention_locks")),
    )
    op.create_table(
        "tenant_turns",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("served_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_tenant_turns")),
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
    op.create_index(op.f("ix_uploads_expires_at"), "uploads", ["expires_at"], unique=False)
    op.create_index(op.f("ix_uploads_tenant"), "uploads", ["tenant"], unique=False)
    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("takes", _JSON, nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=True),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
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
    op.create_index(
        "ix_dataset_issues_dataset_id_position",
        "dataset_issues",
        ["dataset_id", "position"],
        unique=True,
    )
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
    op.create_index(op.f("ix_embeddings_folder"), "embeddings", ["folder"], unique=False)
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
        sa.Column("attributes", _JSON, nullable=False),
        sa.Column("notes", _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_images_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
    )
    op.create_index(
        "ix_images_dataset_id_position", "images", ["dataset_id", "position"], unique=True
    )
    op.create_index(
        "ix_images_dataset_id_sha256_position",
        "images",
        ["dataset_id", "sha256", "position"],
        unique=False,
    )
    op.create_index(op.f("ix_images_sha256"), "images", ["sha256"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("dataset_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("config", _JSON, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("webhook_url", sa.Text(), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("request_id", sa.String(length=100), nullable=True),
        sa.Column("traceparent", sa.String(length=64), nullable=True),
        sa.Column("stages", _JSON, nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("completed", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.Column("rate", sa.Double(), nullable=True),
        sa.Column("timings", _JSON, nullable=False),
        sa.Column("result", _JSON, nullable=True),
        sa.Column("error", _JSON, nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("notifications", sa.Integer(), nullable=False),
        sa.Column("notify_at", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
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
    op.create_index("ix_jobs_dataset_id_id", "jobs", ["dataset_id", "id"], unique=False)
    op.create_index("ix_jobs_dataset_id_status", "jobs", ["dataset_id", "status"], unique=False)
    op.create_index(
        "ix_jobs_status_kind_queued_at", "jobs", ["status", "kind", "queued_at"], unique=False
    )
    op.create_index(
        "ix_jobs_status_kind_tenant", "jobs", ["status", "kind", "tenant"], unique=False
    )
    op.create_index("ix_jobs_status_notify_at", "jobs", ["status", "notify_at"], unique=False)
    op.create_index(
        "ix_jobs_status_priority_id", "jobs", ["status", "priority", "id"], unique=False
    )
    op.create_index(op.f("ix_jobs_tenant"), "jobs", ["tenant"], unique=False)
    op.create_index("ix_jobs_tenant_id", "jobs", ["tenant", "id"], unique=False)
    op.create_index("ix_jobs_tenant_kind_id", "jobs", ["tenant", "kind", "id"], unique=False)
    op.create_index("ix_jobs_tenant_status_id", "jobs", ["tenant", "status", "id"], unique=False)
    op.create_table(
        "skipped_files",
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("first_position", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=16), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("last_position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_skipped_files_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "dataset_id", "first_position", "reason", name=op.f("pk_skipped_files")
        ),
    )
    op.create_table(
        "model_alias_changes",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("before", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("changed_by", sa.String(length=200), nullable=True),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_alias_changes_model_id_models"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "number", name=op.f("pk_model_alias_changes")),
    )
    op.create_index(
        "ix_model_alias_changes_model_id_alias",
        "model_alias_changes",
        ["model_id", "alias"],
        unique=False,
    )
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
        sa.Column("job_id", sa.String(length=40), nullable=True),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("dataset_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("embedding_folder", sa.String(length=200), nullable=True),
        sa.Column("model_name", sa.String(length=100), nullable=False),
        sa.Column("model_version", sa.Integer(), nullable=False),
        sa.Column("n_clusters", sa.Integer(), nullable=False),
        sa.Column("next_cluster_id", sa.Integer(), nullable=False),
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
            ["job_id"], ["jobs.id"], name=op.f("fk_clusterings_job_id_jobs"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clusterings")),
    )
    op.create_index(op.f("ix_clusterings_dataset_id"), "clusterings", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_clusterings_job_id"), "clusterings", ["job_id"], unique=False)
    op.create_index(op.f("ix_clusterings_tenant"), "clusterings", ["tenant"], unique=False)
    op.create_table(
        "current_clustering_changes",
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("before", sa.String(length=40), nullable=True),
        sa.Column("clustering_id", sa.String(length=40), nullable=True),
        sa.Column("changed_by", sa.String(length=200), nullable=True),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_current_clustering_changes_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("dataset_id", "number", name=op.f("pk_current_clustering_changes")),
    )
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
    op.create_index(
        "ix_duplicates_dataset_id_image_id", "duplicates", ["dataset_id", "image_id"], unique=False
    )
    op.create_index(
        "ix_duplicates_dataset_id_kind_image_id",
        "duplicates",
        ["dataset_id", "kind", "image_id"],
        unique=False,
    )
    op.create_index(op.f("ix_duplicates_original_id"), "duplicates", ["original_id"], unique=False)
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
        "model_versions",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=True),
        sa.Column("clustering_id", sa.String(length=40), nullable=True),
        sa.Column("folder", sa.String(length=200), nullable=False),
        sa.Column("manifest", _JSON, nullable=False),
        sa.Column("files", _JSON, nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("served_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_model_versions_job_id_jobs"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_versions_model_id_models"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "version", name=op.f("pk_model_versions")),
    )
    op.create_index(op.f("ix_model_versions_job_id"), "model_versions", ["job_id"], unique=False)
    op.create_table(
        "shards",
        sa.Column("id", sa.String(length=80), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("needs", sa.String(length=8), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("done_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_shards_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shards")),
    )
    op.create_index("ix_shards_done_at_priority", "shards", ["done_at", "priority"], unique=False)
    op.create_index(
        "ix_shards_job_id_stage_number", "shards", ["job_id", "stage", "number"], unique=False
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
    op.create_index(
        op.f("ix_webhook_deliveries_job_id"), "webhook_deliveries", ["job_id"], unique=False
    )
    op.create_index(
        "ix_webhook_deliveries_status_due_at",
        "webhook_deliveries",
        ["status", "due_at"],
        unique=False,
    )
    op.create_table(
        "assignment_changes",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("image_id", sa.String(length=40), nullable=False),
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
            "clustering_id", "revision", "image_id", name=op.f("pk_assignment_changes")
        ),
    )
    op.create_index(
        "ix_assignment_changes_by_image",
        "assignment_changes",
        ["image_id", "clustering_id", "revision"],
        unique=False,
    )
    op.create_table(
        "assignments",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("image_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.Column("margin", sa.Double(), nullable=False),
        sa.Column("distance", sa.Double(), nullable=False),
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
    op.create_index(
        "ix_assignments_by_distance",
        "assignments",
        ["clustering_id", "cluster_id", "distance"],
        unique=False,
    )
    op.create_index(
        "ix_assignments_by_margin",
        "assignments",
        ["clustering_id", "cluster_id", "margin"],
        unique=False,
    )
    op.create_index(
        "ix_assignments_by_probability_image_id",
        "assignments",
        ["clustering_id", "cluster_id", "probability", "image_id"],
        unique=False,
    )
    op.create_index(
        "ix_assignments_clustering_id_cluster_id_image_id",
        "assignments",
        ["clustering_id", "cluster_id", "image_id"],
        unique=False,
    )
    op.create_index(op.f("ix_assignments_image_id"), "assignments", ["image_id"], unique=False)
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
        sa.Column("created_by", sa.String(length=200), nullable=True),
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
        "clusters",
        sa.Column("clustering_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("named", sa.Boolean(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("mean_probability", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["clustering_id"],
            ["clusterings.id"],
            name=op.f("fk_clusters_clustering_id_clusterings"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("clustering_id", "cluster_id", name=op.f("pk_clusters")),
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
    op.create_index(op.f("ix_exports_clustering_id"), "exports", ["clustering_id"], unique=False)
    op.create_index(op.f("ix_exports_storage_key"), "exports", ["storage_key"], unique=False)
    op.create_index(op.f("ix_exports_tenant"), "exports", ["tenant"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_exports_tenant"), table_name="exports")
    op.drop_index(op.f("ix_exports_storage_key"), table_name="exports")
    op.drop_index(op.f("ix_exports_clustering_id"), table_name="exports")
    op.drop_table("exports")
    op.drop_table("clusters")
    op.drop_table("clustering_operations")
    op.drop_index(op.f("ix_assignments_image_id"), table_name="assignments")
    op.drop_index("ix_assignments_clustering_id_cluster_id_image_id", table_name="assignments")
    op.drop_index("ix_assignments_by_probability_image_id", table_name="assignments")
    op.drop_index("ix_assignments_by_margin", table_name="assignments")
    op.drop_index("ix_assignments_by_distance", table_name="assignments")
    op.drop_table("assignments")
    op.drop_index("ix_assignment_changes_by_image", table_name="assignment_changes")
    op.drop_table("assignment_changes")
    op.drop_index("ix_webhook_deliveries_status_due_at", table_name="webhook_deliveries")
    op.drop_index(op.f("ix_webhook_deliveries_job_id"), table_name="webhook_deliveries")
    op.drop_table("webhook_deliveries")
    op.drop_index("ix_shards_job_id_stage_number", table_name="shards")
    op.drop_index("ix_shards_done_at_priority", table_name="shards")
    op.drop_table("shards")
    op.drop_index(op.f("ix_model_versions_job_id"), table_name="model_versions")
    op.drop_table("model_versions")
    op.drop_table("job_logs")
    op.drop_table("job_curves")
    op.drop_index(op.f("ix_duplicates_original_id"), table_name="duplicates")
    op.drop_index("ix_duplicates_dataset_id_kind_image_id", table_name="duplicates")
    op.drop_index("ix_duplicates_dataset_id_image_id", table_name="duplicates")
    op.drop_table("duplicates")
    op.drop_table("current_clustering_changes")
    op.drop_index(op.f("ix_clusterings_tenant"), table_name="clusterings")
    op.drop_index(op.f("ix_clusterings_job_id"), table_name="clusterings")
    op.drop_index(op.f("ix_clusterings_dataset_id"), table_name="clusterings")
    op.drop_table("clusterings")
    op.drop_table("model_aliases")
    op.drop_index("ix_model_alias_changes_model_id_alias", table_name="model_alias_changes")
    op.drop_table("model_alias_changes")
    op.drop_index("ix_jobs_tenant_status_id", table_name="jobs")
    op.drop_index("ix_jobs_tenant_kind_id", table_name="jobs")
    op.drop_index("ix_jobs_tenant_id", table_name="jobs")
    op.drop_index(op.f("ix_jobs_tenant"), table_name="jobs")
    op.drop_index("ix_jobs_status_priority_id", table_name="jobs")
    op.drop_index("ix_jobs_status_notify_at", table_name="jobs")
    op.drop_index("ix_jobs_status_kind_tenant", table_name="jobs")
    op.drop_index("ix_jobs_status_kind_queued_at", table_name="jobs")
    op.drop_index("ix_jobs_dataset_id_status", table_name="jobs")
    op.drop_index("ix_jobs_dataset_id_id", table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(op.f("ix_images_sha256"), table_name="images")
    op.drop_index("ix_images_dataset_id_sha256_position", table_name="images")
    op.drop_index("ix_images_dataset_id_position", table_name="images")
    op.drop_table("images")
    op.drop_index(op.f("ix_embeddings_folder"), table_name="embeddings")
    op.drop_table("embeddings")
    op.drop_index("ix_dataset_issues_dataset_id_position", table_name="dataset_issues")
    op.drop_table("dataset_issues")
    op.drop_table("skipped_files")
    op.drop_table("workers")
    op.drop_index(op.f("ix_uploads_tenant"), table_name="uploads")
    op.drop_index(op.f("ix_uploads_expires_at"), table_name="uploads")
    op.drop_table("uploads")
    op.drop_table("tenant_turns")
    op.drop_table("retention_locks")
    op.drop_index("ix_models_tenant_name", table_name="models")
    op.drop_index(op.f("ix_models_tenant"), table_name="models")
    op.drop_table("models")
    op.drop_table("idempotency_keys")
    op.drop_index(op.f("ix_datasets_tenant"), table_name="datasets")
    op.drop_table("datasets")
    op.drop_index(op.f("ix_blob_deletions_scheduled_at"), table_name="blob_deletions")
    op.drop_table("blob_deletions")
    op.drop_index("ix_audit_entries_tenant_id", table_name="audit_entries")
    op.drop_table("audit_entries")
    op.drop_index(op.f("ix_api_keys_tenant"), table_name="api_keys")
    op.drop_table("api_keys")
