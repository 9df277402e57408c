"""Datasets and their images: rows, uploads, archives, sources, decoding, thumbnails."""
