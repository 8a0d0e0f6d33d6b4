# xbuf without its sources: docker build -t xbuf . && docker run --rm -v /tmp/xla_dump:/dumps:ro -v xbuf:/data xbuf
# docs/install.md says more. `tests/test_container.py` runs these lines, in a container where Docker is.
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --quiet --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels pip install --quiet --no-cache-dir /wheels/*.whl duckdb-cli
RUN install --directory --owner=10001 --group=10001 /data
ENV HOME=/data XBUF_DB=/data/xbuf.duckdb
USER 10001:10001
WORKDIR /data
VOLUME /data
# Until the first import there is no database to examine.
HEALTHCHECK --interval=5m --timeout=1m CMD test ! -e "$XBUF_DB" || xbuf doctor --quiet
CMD ["xbuf-ingest", "/dumps"]
