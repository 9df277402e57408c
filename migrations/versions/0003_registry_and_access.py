"""Registry and access: history of aliases, API keys, audit, where a job came from"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    _create_keys()
    _create_audit()
    _create_alias_changes()
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("last_number", sa.Integer(), nullable=False, server_default="0")
        )
        batch_op.alter_column("latest_version", existing_type=sa.Integer(), nullable=True)
    op.execute("UPDATE models SET last_number = latest_version")
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.alter_column("last_number", existing_type=sa.Integer(), server_default=None)
    with op.batch_alter_table("model_versions", schema=None) as batch_op:
        batch_op.alter_column("clustering_id", existing_type=sa.String(length=40), nullable=True)
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("created_by", sa.String(length=40), nullable=True))
        batch_op.add_column(sa.Column("request_id", sa.String(length=100), nullable=True))
        batch_op.add_column(sa.Column("traceparent", sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column("queued_at", sa.Double(), nullable=True))
    op.execute("UPDATE jobs SET queued_at = created_at")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.alter_column("queued_at", existing_type=sa.Double(), nullable=False)
        batch_op.create_index(
            op.f("ix_jobs_status_kind_queued_at"), ["status", "kind", "queued_at"]
        )


def downgrade() -> None:
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(op.f("ix_jobs_status_kind_queued_at"))
        batch_op.drop_column("queued_at")
        batch_op.drop_column("traceparent")
        batch_op.drop_column("request_id")
        batch_op.drop_column("created_by")
    op.execute("UPDATE model_versions SET clustering_id = '' WHERE clustering_id IS NULL")
    with op.batch_alter_table("model_versions", schema=None) as batch_op:
        batch_op.alter_column("clustering_id", existing_type=sa.String(length=40), nullable=False)
    op.execute("UPDATE models SET latest_version = 0 WHERE latest_version IS NULL")
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.alter_column("latest_version", existing_type=sa.Integer(), nullable=False)
        batch_op.drop_column("last_number")
    op.drop_table("model_alias_changes")
    op.drop_table("audit_entries")
    op.drop_table("api_keys")


def _create_keys() -> None:
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
    op.create_index(op.f("ix_api_keys_tenant"), "api_keys", ["tenant"])


def _create_audit() -> None:
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
    op.create_index(op.f("ix_audit_entries_tenant_id"), "audit_entries", ["tenant", "id"])


def _create_alias_changes() -> None:
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
        op.f("ix_model_alias_changes_model_id_alias"), "model_alias_changes", ["model_id", "alias"]
    )
