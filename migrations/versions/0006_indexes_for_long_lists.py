"""Indexes for long lists: pages of jobs, and of images of which very many are equally sure"""

from migrations.while_used import create_index, drop_index

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_NEW = (
    ("ix_jobs_tenant_id", "jobs", ["tenant", "id"]),
    ("ix_jobs_tenant_status_id", "jobs", ["tenant", "status", "id"]),
    ("ix_jobs_dataset_id_id", "jobs", ["dataset_id", "id"]),
    ("ix_duplicates_dataset_id_image_id", "duplicates", ["dataset_id", "image_id"]),
    ("ix_exports_storage_key", "exports", ["storage_key"]),
    (
        "ix_assignments_by_probability_image_id",
        "assignments",
        ["clustering_id", "cluster_id", "probability", "image_id"],
    ),
)


def upgrade() -> None:
    for name, table, columns in _NEW:
        create_index(name, table, columns)
    drop_index("ix_assignments_by_probability", "assignments")


def downgrade() -> None:
    columns = ["clustering_id", "cluster_id", "probability"]
    create_index("ix_assignments_by_probability", "assignments", columns)
    for name, table, _ in reversed(_NEW):
        drop_index(name, table)
