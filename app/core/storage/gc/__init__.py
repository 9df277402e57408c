"""Files that nothing refers to: who refers to what, and how the rest goes."""
