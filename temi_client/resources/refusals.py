"""Refused images and proposed groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from temi_client.downloads import Progress, download_stream
from temi_client.models.refusals import Proposal, ProposalStatus, Refused, RefusedImage
from temi_client.resources.base import Resource, path_segment, without_none


class RefusalMethods(Resource):
    def refused(self, name: str) -> Refused:
        """Returns how many refused images of a model are kept, and how many may be."""
        return self._get(Refused, f"{_model(name)}/refused")

    def delete_all_refused(self, name: str) -> None:
        """Deletes the refused images of a model; open proposals end with them."""
        self._delete(f"{_model(name)}/refused")

    def refused_images(
        self, name: str, *, proposal_id: str | None = None
    ) -> Iterator[RefusedImage]:
        """Lists the refused images of a model, or those of a proposal, newest first."""
        return self._pages(RefusedImage, f"{_model(name)}/refused-images", proposal_id=proposal_id)

    def refused_content(
        self, refused_id: str, path: str | Path, *, progress: Progress | None = None
    ) -> Path:
        """Saves the file as it was sent."""
        address = f"{_image(refused_id)}/content"
        return download_stream(self._transport, address, Path(path), progress=progress)

    def refused_thumbnail(self, refused_id: str, size: int = 256) -> bytes:
        """Returns a WebP; `size` is its longer side: 64, 128, 256 or 512."""
        path = f"{_image(refused_id)}/thumbnail"
        return self._transport.send("GET", path, params={"size": size}).content

    def delete_refused(self, refused_id: str) -> None:
        """Deletes a refused image, and takes it out of its proposal."""
        self._delete(_image(refused_id))

    def proposals(self, name: str, *, status: ProposalStatus = "open") -> Iterator[Proposal]:
        """Lists the proposed groups of a model, newest first."""
        return self._pages(Proposal, f"{_model(name)}/proposals", status=status)

    def proposal(self, proposal_id: str) -> Proposal:
        return self._get(Proposal, _proposal(proposal_id))

    def accept_proposal(
        self, proposal_id: str, *, new_cluster: str | None = None, cluster_id: int | None = None
    ) -> Proposal:
        """Makes a proposal a new group of the model's clustering, or adds it to one. Calling it
        again changes nothing."""
        body = without_none({"new_cluster": new_cluster, "cluster_id": cluster_id})
        return self._post(Proposal, f"{_proposal(proposal_id)}:accept", body)

    def dismiss_proposal(self, proposal_id: str) -> Proposal:
        """Deletes the images of a proposal; similar ones are not proposed again."""
        return self._post(Proposal, f"{_proposal(proposal_id)}:dismiss")


def _model(name: str) -> str:
    return f"/v1/models/{path_segment(name)}"


def _image(refused_id: str) -> str:
    return f"/v1/refused-images/{path_segment(refused_id)}"


def _proposal(proposal_id: str) -> str:
    return f"/v1/proposals/{path_segment(proposal_id)}"
