"""Published accuracies of clustering systems, most of which also train the features.

They cannot be run on frozen features, so their own figures are the only comparison. The figures
depend on the network and on the images it was trained on: read them beside, not against, ours.
"""

from dataclasses import dataclass

TEMI_PAPER = "TEMI paper (BMVC 2023)"
SMALL_SETS = f"{TEMI_PAPER}, table of small sets"
IMAGENET = f"{TEMI_PAPER}, table of ImageNet"
OVERCLUSTERING = f"{TEMI_PAPER}, table of 25,000 clusters"


@dataclass(frozen=True, kw_only=True)
class Published:
    """Accuracy in percent by Hungarian matching, and AMI in percent with 25,000 clusters; None
    where no figure is known for certain."""

    system: str
    trains_features: bool
    source: str
    cifar10: float | None = None
    cifar20: float | None = None
    cifar100: float | None = None
    stl10: float | None = None
    imagenet: float | None = None
    imagenet_ami: float | None = None
    note: str = ""


PUBLISHED: tuple[Published, ...] = (
    Published(
        system="DAC",
        trains_features=True,
        cifar10=52.2,
        cifar20=23.8,
        stl10=47.0,
        source=SMALL_SETS,
    ),
    Published(system="DeepCluster", trains_features=True, imagenet_ami=28.1, source=OVERCLUSTERING),
    Published(
        system="DCCM",
        trains_features=True,
        cifar10=62.3,
        cifar20=32.7,
        stl10=48.2,
        source=SMALL_SETS,
    ),
    Published(
        system="PICA",
        trains_features=True,
        cifar10=69.6,
        cifar20=33.7,
        stl10=71.3,
        source=SMALL_SETS,
        note="Best of several runs.",
    ),
    Published(
        system="PCL",
        trains_features=True,
        cifar10=87.4,
        cifar20=52.6,
        stl10=41.0,
        imagenet_ami=41.0,
        source=f"{SMALL_SETS}; {OVERCLUSTERING}",
        note="STL-10 as printed; the same row has an NMI of 71.8.",
    ),
    Published(
        system="SPICE",
        trains_features=True,
        cifar10=92.6,
        cifar20=53.8,
        stl10=93.8,
        source=SMALL_SETS,
    ),
    Published(
        system="ProPos",
        trains_features=True,
        cifar10=94.3,
        cifar20=61.4,
        stl10=86.7,
        imagenet_ami=52.5,
        source=f"{SMALL_SETS}; {OVERCLUSTERING}",
        note="The validation images are part of the training images.",
    ),
    Published(
        system="NNM",
        trains_features=True,
        cifar10=84.3,
        cifar20=47.7,
        stl10=80.8,
        source=SMALL_SETS,
    ),
    Published(
        system="SCAN",
        trains_features=True,
        cifar10=88.3,
        cifar20=50.7,
        stl10=80.9,
        imagenet=39.9,
        source=f"{SMALL_SETS}; {IMAGENET}",
    ),
    Published(system="SeLa", trains_features=True, imagenet=30.5, source=IMAGENET),
    Published(system="SSCN", trains_features=True, imagenet=41.1, source=IMAGENET),
    Published(
        system="TSP DINO ViT-B/16",
        trains_features=False,
        cifar10=94.0,
        cifar20=55.6,
        stl10=97.9,
        source=SMALL_SETS,
    ),
    Published(
        system="TEMI DINO ViT-B/16",
        trains_features=False,
        cifar10=94.5,
        cifar20=63.2,
        cifar100=67.1,
        stl10=98.5,
        imagenet=58.4,
        imagenet_ami=59.9,
        source=TEMI_PAPER,
    ),
    Published(
        system="TEMI MSN ViT-L/16",
        trains_features=False,
        cifar10=90.0,
        cifar20=57.8,
        cifar100=61.4,
        stl10=96.7,
        imagenet=61.6,
        source=TEMI_PAPER,
    ),
    Published(
        system="TEMI DINO ResNet50",
        trains_features=False,
        imagenet=45.2,
        imagenet_ami=51.8,
        source=TEMI_PAPER,
    ),
)
