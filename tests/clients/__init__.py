"""Clients that public generators make from the OpenAPI document, against a running service."""
