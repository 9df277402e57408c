"""Base class and columns that tables share."""

from typing import Any

from sqlalchemy import JSON, Double, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.core.platform.clock import db_now

Json = JSON().with_variant(JSONB(), "postgresql")


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy declares it as an instance attribute
        dict[str, Any]: Json,
        list[Any]: Json,
        float: Double(),
    }


def id_column() -> Mapped[str]:
    return mapped_column(String(40), primary_key=True)


def tenant_column() -> Mapped[str]:
    return mapped_column(String(64), index=True)


def created_at_column() -> Mapped[float]:
    return mapped_column(Double(), default=db_now())
