"""The Open Inference Protocol, version 2, so that clients of KServe and Triton need no other.

An adapter: it predicts nothing itself and keeps the limits of `/v1`. `server`, `models` and `infer`
are the routes, `requests` and `answers` the tensors, `binary` those that follow the JSON.
"""

from app.api.routes.oip import infer, models, server

__all__ = ["infer", "models", "server"]
