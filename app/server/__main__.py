"""`python -m app.server`: runs the API in one or more processes."""

import resource
import sys
from contextlib import suppress
from importlib import import_module

from app.core.platform.starting import importing

with importing():
    import uvicorn
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from app.core.platform.settings import Settings, get_settings
    from app.server.config import APP_MODULE, make_config

_OTHER_FILES = 500  # for the database, the storage and the prediction process


def main() -> None:
    settings = get_settings()
    _raise_file_limit(settings)
    config = make_config(settings)
    if config.workers > 1:
        Multiprocess(config, sockets=[config.bind_socket()]).run()
        return
    with importing():
        import_module(APP_MODULE)
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _raise_file_limit(settings: Settings) -> None:
    """Each connection is an open file, and the default limit of some systems is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.max_connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


if __name__ == "__main__":
    main()
