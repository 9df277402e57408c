"""The models and weights that timm and open_clip offer, without loading torch into this process."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import Literal

Library = Literal["timm", "open_clip"]
_SECONDS = 120.0  # importing torch takes long on a busy machine
_lock = threading.Lock()


@dataclass(frozen=True)
class LibraryNames:
    models: frozenset[str]
    pretrained: frozenset[str]  # timm: model.tag, open_clip: model/tag


def library_names(library: Library) -> LibraryNames:
    """Read once, in another process unless this one has loaded torch already."""
    with _lock:
        return _read_names(library)


@cache
def _read_names(library: Library) -> LibraryNames:
    if "torch" in sys.modules:
        names = _list_names(library)
    else:
        names = json.loads(
            subprocess.run(
                [sys.executable, "-m", __name__, library],
                check=True,
                capture_output=True,
                timeout=_SECONDS,
            ).stdout.splitlines()[-1]  # the libraries may print
        )
    return LibraryNames(*map(frozenset, names))


def _list_names(library: str) -> tuple[list[str], list[str]]:
    if library == "timm":
        import timm

        return timm.list_models(), timm.list_pretrained()
    import open_clip

    pairs = open_clip.list_pretrained()
    return open_clip.list_models(), [f"{model}/{tag}" for model, tag in pairs]


if __name__ == "__main__":
    print("\n" + json.dumps(_list_names(sys.argv[1])))
