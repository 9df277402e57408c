"""The workbench in a real browser, against a real service."""
