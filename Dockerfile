# An image that serves a model: see docs/serving.md.
#
#     docker build -t ldsm .
#     docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" -v corrections:/corrections \
#         ldsm /models/tags.ldsm

# The digest makes builds reproducible. Dependabot updates it.
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[serve]" && rm -r /wheels \
    && install --directory --owner=nobody --mode=700 /corrections
USER nobody
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/v2/health/live')"]
ENTRYPOINT ["ldsm", "serve", "--host", "0.0.0.0", "--corrections", "/corrections"]
CMD ["/models/tags.ldsm"]
