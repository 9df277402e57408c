"""The HTTP server: uvicorn, with bounds on what a client may hold.

uvicorn bounds neither the head of a request nor the number and idle time of connections: one
client could fill the memory or hold every connection. `protocol` adds these bounds; `python -m
app.server` starts the API with them.
"""

from app.server.config import ConnectionLimits, ServerConfig, make_config

__all__ = ["ConnectionLimits", "ServerConfig", "make_config"]
