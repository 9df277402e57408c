"""The service itself."""

from __future__ import annotations

from temi_client.models.system import System
from temi_client.resources.base import Resource


class SystemMethods(Resource):
    def system(self) -> System:
        """Returns the version, the device, the storage, the limits and the backbones."""
        return self._get(System, "/v1/system")
