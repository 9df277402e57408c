"""`python -m app.core.serving SOCKET PARENT_PID`: the program of the prediction process."""

from app.core.platform.starting import importing

with importing():
    from app.core.serving.process import main

main()
