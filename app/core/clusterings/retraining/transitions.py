"""How the groups of a clustering continue in a later clustering of the same images.

A group goes to a new cluster that has most of its images, or at least a tenth of them if they are
half of the new cluster. Of the groups that go to a new cluster the one with the most images
continues in it, the others are merged into it. A group that continues in several is split.

The groups and clusters that are left are matched one to one, by the most common images; a quarter
of both must be common.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from app.core.clusterings.agreement import Integers, Overlap

Status = Literal["kept", "split", "merged", "vanished"]
_PART = 10  # at least a tenth of the group: fewer images only leave it
_MATCH = 4  # at least a quarter of what is left on both sides


@dataclass(frozen=True, kw_only=True)
class Transitions:
    goes_to: dict[int, list[int]]  # the new clusters of a group, that with most of its images first
    holders: dict[int, int]  # the group that continues in a new cluster
    stays: dict[int, float]  # the share of a group's images in the clusters that continue it

    @cached_property
    def parts(self) -> dict[int, list[int]]:
        """The new clusters in which a group continues, the main one first."""
        return {
            group: [number for number in to if self.holders[number] == group]
            for group, to in self.goes_to.items()
        }

    @cached_property
    def sources(self) -> dict[int, list[int]]:
        """The groups that go to a new cluster."""
        found: dict[int, list[int]] = {}
        for group, to in sorted(self.goes_to.items()):
            for number in to:
                found.setdefault(number, []).append(group)
        return found

    def merged_into(self, group: int) -> int | None:
        """The new cluster of another group that has most of the group's images."""
        to = self.goes_to.get(group, [])
        return next((number for number in to if self.holders[number] != group), None)

    def merged_with(self, group: int) -> list[int]:
        """The other groups that go to the same new clusters."""
        to = self.goes_to.get(group, [])
        return sorted({other for number in to for other in self.sources[number]} - {group})

    def status(self, group: int, *, joined: bool) -> Status:
        """`joined`: the parts of the group stay together."""
        to = self.goes_to.get(group, [])
        if not to:
            return "vanished"
        parts = len(self.parts[group])
        if len(to) > 1 and not (joined and parts == len(to)):
            return "split"
        return "merged" if self.merged_with(group) else "kept"


def find_transitions(overlap: Overlap) -> Transitions:
    """From the images of each pair of an old group and a new cluster."""
    left, right, count = overlap.left, overlap.right, overlap.count
    of_left, of_right = _sums(left, count), _sums(right, count)
    most = 2 * count > of_left
    goes = most | ((2 * count >= of_right) & (_PART * count >= of_left))
    rest = ~np.isin(left, left[goes]) & ~np.isin(right, right[goes])
    rest &= (_MATCH * count >= of_left) & (_MATCH * count >= of_right)
    if rest.any():
        goes[rest] = Overlap(left[rest], right[rest], count[rest]).matched()
    goes_to: dict[int, list[int]] = {}
    holders: dict[int, int] = {}
    stays: dict[int, float] = {}
    at = np.flatnonzero(goes)
    # Most images first, then the lowest numbers.
    for pair in at[np.lexsort((right[at], left[at], -count[at]))]:
        group, number = int(left[pair]), int(right[pair])
        goes_to.setdefault(group, []).append(number)
        if holders.setdefault(number, group) == group:
            stays[group] = stays.get(group, 0.0) + float(count[pair] / of_left[pair])
    return Transitions(goes_to=goes_to, holders=holders, stays=stays)


def _sums(side: Integers, count: Integers) -> Integers:
    """For each pair, the images of its cluster on this side."""
    _, numbers = np.unique(side, return_inverse=True)
    sums = np.zeros(len(side), dtype=np.int64)
    np.add.at(sums, numbers, count)
    found: Integers = sums[numbers]
    return found
