"""Finished clusterings: clusters, assignments, edits and revisions, statistics, plots."""
