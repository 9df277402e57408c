# One image for the API, the workers and the migration; the command decides.
#
#   docker build --target cpu --tag temi-service:cpu .
#   docker build --target cuda --tag temi-service:cuda .
#
# The usual torch package brings CUDA along: 6.3 GB of packages for the one, 7.8 GB for the other.
# Where there is an index with a torch for the CPU alone, name it, for about 2 GB:
#   docker build --target cpu --build-arg CPU_TORCH_INDEX=ADDRESS --tag temi-service:cpu .
# By digest: --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:... (deploy/compose/pin-images.sh)
ARG PYTHON_IMAGE=python:3.11-slim
ARG NODE_IMAGE=node:22-slim

FROM ${NODE_IMAGE} AS page
WORKDIR /src/web
COPY web/package.json web/package-lock.json web/.npmrc ./
RUN npm ci
COPY web ./
RUN npm run build

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/temi
WORKDIR /src
# The packages change seldom and take minutes: they get a layer of their own.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > requirements.txt

FROM build AS project
COPY README.md LICENSE ./
COPY temi temi
COPY temi_client temi_client
COPY app app
COPY worker worker
COPY migrations migrations
COPY --from=page /src/app/static app/static
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM build AS build-cuda
RUN /opt/temi/bin/pip install --constraint constraints.txt --requirement requirements.txt
COPY --from=project /wheels /wheels
RUN /opt/temi/bin/pip install --no-deps /wheels/*.whl

FROM build AS build-cpu
ARG CPU_TORCH_INDEX=""
RUN if [ -n "$CPU_TORCH_INDEX" ]; then \
        /opt/temi/bin/pip install --constraint constraints.txt --index-url "$CPU_TORCH_INDEX" torch torchvision; \
    fi
RUN sed --in-place --expression '/^faiss-cpu/d' --expression 's/^faiss-gpu\([^;]*\);.*/faiss-cpu\1/' requirements.txt \
    && /opt/temi/bin/pip install --constraint constraints.txt --requirement requirements.txt
COPY --from=project /wheels /wheels
RUN /opt/temi/bin/pip install --no-deps /wheels/*.whl

FROM ${PYTHON_IMAGE} AS run
RUN useradd --system --uid 10001 --create-home temi \
    && install --directory --owner temi --group temi /data
# What libraries download or compile for themselves goes to the volume: the rest may be read-only.
ENV PATH=/opt/temi/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/data \
    TEMI_DATA_DIR=/data TEMI_LOG_FORMAT=json
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
# Asks this container itself; a container without the API (a worker) asks at another port.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=4)"]
ENTRYPOINT ["temi"]
CMD ["api"]

FROM run AS cuda
# The driver comes from the host, by way of NVIDIA's container toolkit.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda /opt/temi /opt/temi

FROM run AS cpu
COPY --from=build-cpu /opt/temi /opt/temi
