"""Requests for jobs. Each kind checks what it can before any work is queued, then makes a row."""
