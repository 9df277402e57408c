"""The entry point of Alembic; uses the connection that the caller opened."""

from alembic import context

from app.core.platform.tables import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",  # SQLite alters tables by copying them
    transactional_ddl=True,
    transaction_per_migration=True,  # concurrent indexes are created outside of one
)
with context.begin_transaction():
    context.run_migrations()
