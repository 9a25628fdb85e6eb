"""How the tests of the command run it, unless they need a process."""

import pytest

from cli_runs import within


@pytest.fixture
def run(capsys):
    return within(capsys)
