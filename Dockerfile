# syntax=docker/dockerfile:1
# One file for amd64 and arm64: docker buildx build --platform linux/amd64,linux/arm64 .
ARG PYTHON=3.13-slim

FROM python:${PYTHON} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/rebalancer
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY rebalancer ./rebalancer
# Bytecode is compiled here: the root file system is read-only at run time, so that each start would compile anew.
RUN /opt/rebalancer/bin/pip install --no-compile -c constraints.txt . \
    && /opt/rebalancer/bin/pip uninstall --yes pip \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/rebalancer/lib

FROM python:${PYTHON}
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rebalancer" \
      org.opencontainers.image.description="Event-driven rebalancer for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# The base image ships its standard library without bytecode.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    -x '/(test|idlelib|tkinter|turtledemo|site-packages)/' /usr/local/lib/python3*
COPY --from=build /opt/rebalancer /opt/rebalancer
ENV PATH=/opt/rebalancer/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["rebalancer"]
CMD ["run"]
