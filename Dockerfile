# One image for the API, the workers and the migration; the command decides.
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/temi
WORKDIR /src
# The packages change seldom and take minutes: they get a layer of their own.
COPY pyproject.toml constraints.txt ./
RUN /opt/temi/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > requirements.txt \
    && /opt/temi/bin/pip install --constraint constraints.txt --requirement requirements.txt
COPY README.md LICENSE ./
COPY temi temi
COPY temi_client temi_client
COPY app app
COPY worker worker
COPY migrations migrations
RUN /opt/temi/bin/pip install --no-deps .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home temi \
    && install --directory --owner temi --group temi /data
COPY --from=build /opt/temi /opt/temi
ENV PATH=/opt/temi/bin:$PATH PYTHONUNBUFFERED=1 TEMI_DATA_DIR=/data TEMI_LOG_FORMAT=json
USER temi
WORKDIR /home/temi
VOLUME /data
EXPOSE 8000
# Asks this container itself; a container without the API (a worker) switches it off.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=4)"]
ENTRYPOINT ["temi"]
CMD ["api"]
