"""One module a job kind."""
