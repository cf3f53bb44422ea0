# `pointing serve` for a run that is given as a volume, on CPUs; docs/serving.md says how to build and start it.

FROM python:3.11-slim-bookworm AS build
# pip reads this variable in the steps below: the address of an index that has PyTorch's CPU build. Without it pip may
# choose the CUDA build, which works too and is several gigabytes larger.
ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
RUN python -m venv /opt/pointing
# The packages of others come first: a change of our own code does not install them again.
COPY requirements.lock ./
RUN /opt/pointing/bin/pip install --constraint requirements.lock torch==2.13.0
COPY pyproject.toml README.md LICENSE ./
COPY pointing ./pointing
RUN /opt/pointing/bin/pip install --constraint requirements.lock ".[serve]"

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin pointing
COPY --from=build /opt/pointing /opt/pointing
ENV PATH=/opt/pointing/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
# The folder of a trained run. Nothing is written into it.
VOLUME /run-folder
EXPOSE 5000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:5000/health', timeout=4)"]
# 0.0.0.0 is open to other machines, so the server starts only with a key (POINTING_API_KEY) or with --no-auth.
ENTRYPOINT ["pointing", "serve", "--host", "0.0.0.0", "--port", "5000"]
CMD ["/run-folder"]
