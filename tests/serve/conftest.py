"""A small model, and a service that offers it."""

import pytest

from ldsm.serve import create_app
from services import running, small_tagger


@pytest.fixture(scope="session")
def tagger():
    return small_tagger()


@pytest.fixture(scope="session")
def model_file(tagger, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tags.ldsm"
    tagger.save(path)
    return path


@pytest.fixture(scope="session")
def client(model_file):
    with running(create_app([model_file])) as client:
        yield client


@pytest.fixture
def own_model(tagger, tmp_path):
    """A file that a test may change."""
    path = tmp_path / "tags.ldsm"
    tagger.save(path)
    return path
