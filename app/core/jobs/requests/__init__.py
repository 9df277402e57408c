"""Request models of the jobs, one per kind: the body of `POST /v1/jobs`, and how it becomes a row.

A field that is left out is chosen for the size of the dataset.
"""
