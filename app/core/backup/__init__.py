"""The whole instance in one file, and back: rows, models, artifacts, images."""
