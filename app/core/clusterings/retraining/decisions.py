"""What the decisions about the groups of an old clustering make of the clusters of the new one.

An image changes its group only if the group that it leaves and the group that it enters are both
approved. So a rejected group has the images that it had, and of others only photos that the old
clustering lacks, or those of a group that was approved to end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from app.core.clusterings.agreement import Integers
from app.core.clusterings.members import Ids
from app.core.clusterings.operations.kinds import numbered_label
from app.core.clusterings.retraining.pair import Decision, Pair
from app.core.clusterings.rows import cluster_label
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import EXCLUDED

Flags = npt.NDArray[np.bool_]
_NONE = -3  # no cluster; differs from EXCLUDED and ABSENT


@dataclass(frozen=True, kw_only=True)
class Outcome:
    pair: Pair
    rejected: frozenset[int]  # groups
    homes: dict[int, int]  # the cluster that continues a group; groups that end have none
    created: dict[int, int] = field(default_factory=dict)  # new cluster -> the group that it is
    merges: dict[int, int] = field(default_factory=dict)  # cluster -> the cluster it is merged into

    @property
    def ended(self) -> list[int]:
        """Groups that are no cluster of their own any more."""
        groups = self.pair.groups.keys() - self.rejected
        return sorted(group for group in groups if not self.pair.parts(group))

    def final(self, cluster: int) -> int:
        return self.merges.get(cluster, cluster)

    def place(self, images: "Images") -> tuple[Integers, Flags]:
        """The cluster of each image, and whether that is where a person has placed it: (N,)."""
        old, new, by_hand = images.old, images.new, images.by_hand & ~images.by_hand_since
        home, holder = _lookup(old, self.homes), _lookup(new, self.pair.transitions.holders)
        place = _lookup(new, self.merges, new)
        has_home = home != _NONE
        stays = _isin(old, self.rejected)
        closed = (holder != old) & _isin(holder, self.rejected) & has_home
        elsewhere = by_hand & (holder != old) & (place != home) & has_home
        back = (stays | closed | elsewhere) & ~images.by_hand_since
        excluded = (new == EXCLUDED) | ((old == EXCLUDED) & ~images.by_hand_since)
        place = np.where(excluded, EXCLUDED, np.where(back, home, place))
        said = by_hand & np.where(old == EXCLUDED, True, has_home & (new != EXCLUDED))
        return place, said

    def labels(self) -> dict[int, tuple[str, bool]]:
        """The new names of clusters, and whether a person gave them."""
        pair = self.pair
        found: dict[int, tuple[str, bool]] = {}
        for number, group in self.created.items():
            label = pair.groups[group].label if pair.has_label(group) else cluster_label(number)
            found[number] = label, pair.groups[group].named
        for group, parts in sorted(pair.transitions.parts.items()):
            if not pair.has_label(group):
                continue
            shown = [part for part in parts if part not in self.merges]
            for count, part in enumerate(shown, start=1):
                given = pair.groups[group].named and count == 1
                if given or not pair.clusters[part].named:
                    found[part] = numbered_label(pair.groups[group].label, count), given
        for group in sorted(self.ended, key=lambda each: (-pair.groups[each].size, each)):
            home = self.homes.get(group)
            if home is not None and pair.groups[group].named and not self._is_named(home, found):
                found[home] = pair.groups[group].label, True
        return found

    def _is_named(self, cluster: int, labels: dict[int, tuple[str, bool]]) -> bool:
        return labels[cluster][1] if cluster in labels else self.pair.clusters[cluster].named


@dataclass(frozen=True, kw_only=True)
class Images:
    """The images of the new clustering: (N,) each."""

    ids: Ids
    old: Integers  # their clusters; ABSENT if the old clustering lacks the image
    new: Integers
    by_hand: Flags  # whether a person has placed it in the old clustering
    by_hand_since: Flags  # or in the new one


def decide(pair: Pair, decisions: Mapping[int, Decision]) -> Outcome:
    """Groups without a decision get the suggested one."""
    unknown = next((number for number in decisions if number not in pair.groups), None)
    if unknown is not None:
        raise InvalidRequest.field("decisions", f"the old clustering has no cluster {unknown}")
    chosen = {number: decisions.get(number, pair.suggested(number)) for number in pair.groups}
    rejected = {number for number, decision in chosen.items() if decision == "reject"}
    outcome = Outcome(pair=pair, rejected=_with_dependent(pair, rejected), homes={})
    number = pair.new.next_cluster_id
    for group in sorted(pair.groups):
        parts = pair.parts(group)
        if parts:
            outcome.homes[group] = parts[0]
            if group in outcome.rejected or group in pair.joined:
                outcome.merges.update(dict.fromkeys(parts[1:], parts[0]))
        elif group in outcome.rejected:
            outcome.homes[group], outcome.created[number] = number, group
            number += 1
    for group in pair.groups:
        into = pair.transitions.merged_into(group)
        if group not in outcome.homes and into is not None:
            outcome.homes[group] = outcome.final(into)
    return outcome


def _with_dependent(pair: Pair, rejected: set[int]) -> frozenset[int]:
    """Groups become one only if all are approved: those that go to a rejected one are, too."""
    holder_of = {group: _holder_of_target(pair, group) for group in pair.groups}
    while more := {group for group, to in holder_of.items() if to in rejected} - rejected:
        rejected = rejected | more
    return frozenset(rejected)


def _holder_of_target(pair: Pair, group: int) -> int | None:
    into = pair.transitions.merged_into(group)
    return None if into is None else pair.transitions.holders[into]


def _lookup(
    numbers: Integers, values: Mapping[int, int], default: Integers | int = _NONE
) -> Integers:
    """The value of each number, or the default: (N,)."""
    known, inverse = np.unique(numbers, return_inverse=True)
    found = np.array([values.get(int(number), _NONE) for number in known], dtype=np.int64)[inverse]
    return np.where(found == _NONE, default, found)


def _isin(numbers: Integers, chosen: frozenset[int]) -> Flags:
    return np.isin(numbers, np.array(sorted(chosen), dtype=np.int64))
