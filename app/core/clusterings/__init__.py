"""Finished clusterings: clusters, assignments, operations and revisions, statistics, plots."""
