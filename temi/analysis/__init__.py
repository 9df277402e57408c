"""What a clustering, its pairs and its settings are worth: arrays in, figures out.

Each question has a module of its own; nothing is imported here, so that asking one of them does
not load what only another needs.
"""
