"""Shared by all routes: authentication, limits, errors, pagination, middleware."""
