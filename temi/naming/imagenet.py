"""Words for the classes of ImageNet: their own names, and broader ones that people would use.

A group of dogs has many breeds and little probability for each: together they say "dog".
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from temi.naming.scores import Strengths

CLASSES = 1000
# Ranges of class numbers.
_BROADER = {
    "fish": "0-6 389-397",
    "shark": "2-4",
    "bird": "7-24 80-100 127-146",
    "chicken": "7-8",
    "duck": "97-98",
    "parrot": "87-90",
    "bird of prey": "21-24",
    "songbird": "10-20",
    "amphibian": "25-32",
    "frog": "30-32",
    "salamander": "25-29",
    "turtle": "33-37",
    "lizard": "38-48",
    "crocodile": "49-50",
    "reptile": "33-68",
    "snake": "52-68",
    "spider": "72-77",
    "crab": "118-121 125",
    "lobster": "122-124",
    "snail": "113-115",
    "whale": "147-148",
    "dog": "151-268",
    "terrier": "179-202",
    "spaniel": "152 156 215-221",
    "retriever": "205-209",
    "poodle": "265-267",
    "wolf": "269-271",
    "fox": "277-280",
    "cat": "281-285",
    "big cat": "286-293",
    "bear": "294-297",
    "insect": "300-320",
    "beetle": "300-307",
    "butterfly": "321-326",
    "rabbit": "330-332",
    "rodent": "333-338",
    "horse": "339",
    "pig": "341-343",
    "cattle": "345-347",
    "sheep": "348-350",
    "deer": "351-353",
    "antelope": "351-353",
    "monkey": "369-382",
    "ape": "365-368",
    "elephant": "385-386 101",
    "airplane": "404 895 908",
    "aircraft": "404-405 417 895 908 812",
    "car": "436 468 511 609 627 656 661 717 751 817",
    "truck": "555 569 675 717 864 867",
    "bus": "654 779 874",
    "train": "466 547 565 705 820 829",
    "ship": "403 510 628 724 780 554 833",
    "boat": "472 484 554 576 625 814 871 914 780",
    "sailboat": "484 780 871 914",
    "bicycle": "444 671",
    "motorcycle": "665 670",
    "bridge": "821 839 888",
    "building": "425 449 483 497 498 580 660 663 668 698 727 743 762 832 900",
    "church": "497 663 406 442 884",
    "shop": "415 424 454 467 509 582 788 860 865",
    "chair": "423 559 765 857",
    "furniture": "423 453 492 493 495 516 520 526 532 559 564 765 831 857 894",
    "clock": "409 530 892 826 835",
    "computer": "508 527 590 620 664 673 681",
    "camera": "732 759",
    "telephone": "487 528 707",
    "kitchen appliance": "534 550 651 760 766 827 859 891 521",
    "cookware": "469 544 567 909 505 849",
    "bottle": "440 720 737 898 907 899",
    "cup": "504 968 441 572",
    "bag": "414 636 728 748",
    "shoe": "502 514 630 770 774 788",
    "hat": "439 452 515 667 808",
    "clothing": "399 400 411 445 459 474 501 568 578 601 608 610 614 617 638 639 652 655 689 697 "
    "735 775 824 834 841 842 869 887",
    "ball": "429 430 522 574 722 768 805 852 890",
    "guitar": "402 420 546",
    "musical instrument": "401 402 420 432 486 513 541 546 558 566 579 593 594 641 642 683 684 687 "
    "699 776 822 875 881 889",
    "tool": "473 477 491 512 587 596 623 740 783 784 792",
    "weapon": "413 456 471 597 657 744 763 764",
    "road sign": "919",
    "sign": "919 920",
    "fence": "489 716 912",
    "food": "924-935 959-965",
    "bread": "930-932 961",
    "dessert": "927-929 960",
    "vegetable": "936-947",
    "squash": "939-942",
    "fruit": "948-957",
    "apple": "948",
    "mushroom": "947 991-997",
    "flower": "985-986",
    "orchid": "986",
    "crop": "984 987 958",
    "mountain": "970 980 972",
    "beach": "977-978",
    "coast": "976-978 972",
    "lake": "975",
    "landscape": "970 972 975-980",
    "harbor": "536 718 449 510",
    "sports": "416 422 543 602 702 736 981",
}


def with_broader_words(
    names: Sequence[str], probabilities: npt.NDArray[np.floating]
) -> tuple[list[str], Strengths]:
    """Return the words for all classes, then the broader ones, with their probabilities: (G, W).

    ``names`` are those of the classes, with synonyms after commas; ``probabilities`` is (G, 1000).
    """
    exact = np.asarray(probabilities, dtype=np.float64)
    broader = np.stack([exact[:, _numbers(ranges)].sum(axis=1) for ranges in _BROADER.values()], 1)
    words = [name.partition(",")[0] for name in names]
    return [*words, *_BROADER], np.concatenate([exact, broader], axis=1)


def _numbers(ranges: str) -> list[int]:
    found: list[int] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
