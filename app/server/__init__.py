"""The HTTP server: uvicorn with limits on headers, connections and idle time.

uvicorn limits neither the headers of a request nor the number and idle time of connections: one
client could fill the memory or occupy every connection. `protocol` adds these limits; `python -m
app.server` starts the API with them.
"""

from app.server.config import ConnectionLimits, ServerConfig, make_config

__all__ = ["ConnectionLimits", "ServerConfig", "make_config"]
