"""The Open Inference Protocol, version 2, for clients of KServe and Triton.

An adapter over `app.api.inference`, with the limits of `/v1`. `server`, `models` and `infer` are
the routes; `requests` and `responses` convert tensors, `binary` those that follow the JSON.
"""

from app.api.routes.oip import infer, models, server

__all__ = ["infer", "models", "server"]
