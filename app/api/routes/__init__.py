"""One module a resource of the REST API."""
