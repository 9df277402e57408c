"""Nearest-neighbor search: exact, or approximate with an inverted file (IVF) as in FAISS."""
