"""Backup and restore of a whole instance: rows, models, artifacts, images."""
