from tests.client.live import collection, live

__all__ = ["collection", "live"]
