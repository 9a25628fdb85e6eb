"""What all tests of clusters have in common."""

import pytest

from dask_clusters import make_store, settings


@pytest.fixture(scope="module", autouse=True)
def _settings():
    with settings():
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("stores"))
