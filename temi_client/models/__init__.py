"""Responses of the service. Fields that a newer service adds are ignored."""
