"""The methods of the client, one file per resource of the service."""
