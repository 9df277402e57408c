"""The systems that TEMI is compared with, in their form for frozen features.

Every rival has a ``name`` and ``fit(features, n_clusters, seed=...)``, which returns the labels
and a function for new rows. Settings are the published ones where a run on a processor allows,
otherwise they were chosen once on a few labeled sets; no rival is tuned to a set.
`published` has the figures of systems that train the features too.
"""

from benchmarks.rivals.base import Fitted, Rival
from benchmarks.rivals.iic import Iic
from benchmarks.rivals.kmeans import KMeans
from benchmarks.rivals.nnm import Nnm
from benchmarks.rivals.scan import Scan
from benchmarks.rivals.sela import Sela
from benchmarks.rivals.spectral import Spectral
from benchmarks.rivals.sscn import Sscn
from benchmarks.rivals.tsp import Tsp
from benchmarks.rivals.turtle import Turtle
from benchmarks.rivals.umap_gmm import UmapGmm

RIVALS: tuple[Rival, ...] = (
    KMeans(),
    Spectral(),
    UmapGmm(),
    Iic(),
    Sela(),
    Scan(),
    Nnm(),
    Sscn(),
    Tsp(),
    Turtle(),
)

__all__ = ["RIVALS", "Fitted", "Rival"]
