"""A version as one file that another service can take in.

A zip whose members are stored, not compressed: `manifest.json`, `checksums.json`,
`model.safetensors`, and `backbone.safetensors` if the backbone was fine-tuned. No part of it is
ever unpickled, and none is trusted before it was checked.
"""

MANIFEST_FILE = "manifest.json"
CHECKSUMS_FILE = "checksums.json"
ENDING = ".temi"
