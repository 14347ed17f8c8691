# The command line in a container, built from this checkout. Untested: we had no container engine.
#     docker build -t slimfl .
#     docker run --rm -v "$PWD/runs:/work/runs" slimfl run --rounds 5
# With Flower and Ray: docker build -t slimfl-flower --build-arg EXTRAS=[deploy] .
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml constraints.txt CMakeLists.txt README.md LICENSE ./
COPY src src
ARG EXTRAS=
ENV PIP_CONSTRAINT=/source/constraints.txt PIP_BUILD_CONSTRAINT=/source/constraints.txt PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/slimfl \
 && /opt/slimfl/bin/pip install --no-deps --extra-index-url https://download.pytorch.org/whl/cpu \
        "$(grep '^torch==' constraints.txt)" \
 && /opt/slimfl/bin/pip install ".${EXTRAS}"

FROM python:3.11-slim
COPY --from=build /opt/slimfl /opt/slimfl
ENV PATH=/opt/slimfl/bin:$PATH
RUN useradd --create-home slimfl && mkdir -p /work/runs && chown -R slimfl /work
USER slimfl
WORKDIR /work
ENTRYPOINT ["slimfl"]
CMD ["run"]
