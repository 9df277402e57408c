"""Exports of labels: one module per format, each streams the rows."""
