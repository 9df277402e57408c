"""Search of a dataset."""

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas.datasets import ImageId, Neighbor


class SearchBody(BaseModel):
    """Exactly one of the two fields."""

    model_config = ConfigDict(extra="forbid")

    image_id: ImageId | None = Field(
        default=None, description="An image of this or another of your datasets."
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="What the images show; needs features of a CLIP-like backbone.",
        examples=["a red car"],
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> "SearchBody":
        if (self.image_id is None) == (self.text is None):
            raise ValueError("send either image_id or text")
        return self


class FoundImage(Neighbor):
    cluster_id: int | None = Field(
        description="Its cluster; null if it is excluded or there is no clustering."
    )
    label: str | None = Field(description="The current name of the cluster.")


class SearchResults(BaseModel):
    dataset_id: str
    clustering_id: str | None = Field(
        description="The clustering whose features were compared and whose clusters are shown."
    )
    data: list[FoundImage] = Field(description="Most similar first.")
