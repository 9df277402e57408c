"""The model registry: models by name, version and alias.

It imports nothing: the prediction process needs only `files`, and the tables take half a second.
"""
