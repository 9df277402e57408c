"""What changed from one clustering of a dataset to another, and its adoption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from temi_client.models.clustering_changes import ChangedImages, Changes
from temi_client.models.clusterings import Operation
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none

Decision = Literal["approve", "reject"]


class ClusteringChangeMethods(Resource):
    def changes(self, clustering_id: str, since: str) -> Changes:
        """Returns what becomes of each group of the clustering `since`."""
        return self._get(Changes, f"{_path(clustering_id)}/changes", since=since)

    def changed_images(
        self,
        clustering_id: str,
        since: str,
        cluster_id: int,
        *,
        into: Sequence[int] = (),
        limit: int | None = None,
    ) -> ChangedImages:
        """Returns images of a group of `since` that stayed in the new clusters `into`, that left
        for others, and that came to them."""
        path = f"{_path(clustering_id)}/changes/{path_segment(cluster_id)}/images"
        return self._get(ChangedImages, path, since=since, into=list(into), limit=limit)

    def adopt(
        self,
        clustering_id: str,
        since: str,
        *,
        decisions: Mapping[int, Decision] | None = None,
        make_current: bool = False,
        alias: str | None = None,
        revision: int | None = None,
        since_revision: int | None = None,
    ) -> Operation:
        """Takes over names and edits of `since`; groups without a decision get the suggested one.
        Pass the revisions of the changes that you have seen; by default they are read first."""
        if revision is None or since_revision is None:
            seen = self.changes(clustering_id, since)
            revision = revision or seen.revision
            since_revision = since_revision or seen.since_revision
        chosen = [
            {"cluster_id": number, "decision": decision}
            for number, decision in (decisions or {}).items()
        ]
        body = {
            "since": since,
            "since_revision": since_revision,
            "decisions": chosen,
            "make_current": make_current,
            "alias": alias,
        }
        headers = {"If-Match": f'"{revision}"', **idempotency_header(None)}
        return self._post(Operation, f"{_path(clustering_id)}:adopt", without_none(body), headers)


def _path(clustering_id: str) -> str:
    return f"/v1/clusterings/{path_segment(clustering_id)}"
