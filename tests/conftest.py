"""Shared fixtures. Tests on benchmark data run where LDSM_DATA names its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def benchmark_data():
    folder = os.environ.get("LDSM_DATA")
    if not folder:
        pytest.skip("LDSM_DATA is not set: no benchmark data at hand")
    return Path(folder)
