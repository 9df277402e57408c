"""Model files: a version as one file that another service can import.

A zip whose members are stored, not compressed: `manifest.json`, `checksums.json`,
`model.safetensors`, and `backbone.safetensors` if the backbone was fine-tuned. Nothing in it is
unpickled, and every member is checked before it is used.
"""

MANIFEST_FILE = "manifest.json"
CHECKSUMS_FILE = "checksums.json"
ENDING = ".temi"
