"""A disk without room, as far as this process can tell."""

import resource
from contextlib import contextmanager


@contextmanager
def no_file_beyond(n_bytes):
    """As if the disk were full after this many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
