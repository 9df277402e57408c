"""Analyses of a clustering, its pairs and its settings.

Nothing is imported here, so that one analysis does not load the dependencies of the others.
"""
