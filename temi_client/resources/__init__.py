"""The methods of the client, one file a resource of the service."""
