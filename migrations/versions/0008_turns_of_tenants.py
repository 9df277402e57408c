"""Turns of tenants, and the memory that a job is estimated to take"""

import sqlalchemy as sa
from alembic import op

from migrations.while_used import create_index, drop_index

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tenant_turns",
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("served_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_tenant_turns")),
    )
    op.execute("INSERT INTO tenant_turns SELECT DISTINCT tenant, 0.0 FROM jobs")
    op.add_column("jobs", sa.Column("memory_bytes", sa.BigInteger(), nullable=True))
    create_index("ix_jobs_status_kind_tenant", "jobs", ["status", "kind", "tenant"])


def downgrade() -> None:
    drop_index("ix_jobs_status_kind_tenant", "jobs")
    op.drop_column("jobs", "memory_bytes")
    op.drop_table("tenant_turns")
