"""The settings of a service."""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

MEGABYTE = 1_000_000
# Key of `timeout` in the state that the application shares with its server.
TIMEOUT_STATE = "ldsm_timeout"


@dataclass(frozen=True)
class Settings:
    """Limits and paths of a service.

    Attributes
    ----------
    max_body : int, default=1,000,000
        Maximum size of a request in bytes.
    max_batch : int, default=256
        Maximum number of texts per request and per batch.
    max_waiting : int, default=1024
        Maximum number of waiting texts; requests beyond it get status 429 with Retry-After.
    max_tags : int, default=1000
        Maximum number of tags per text.
    timeout : float, default=30
        Time limit in seconds for a request, and for reading its answer.
    api_key_file : path, optional
        A file with the API key on one line. All requests need it, except for the page itself and
        the health checks.
    corrections : path, optional
        The folder for correction files; by default next to the models.
    encoder : path, optional
        The encoder of models that were trained with one: a folder or an ``.onnx`` file.
    learn : bool, default=False
        Whether corrections are learned as they arrive.
    save_every : float, default=30
        Seconds between saves of a model that learns.
    allow_origins : tuple of str, default=()
        Web sites whose pages may call the service.
    allowed_hosts : tuple of str, default=()
        Accepted host names, without a port; any if empty. `ldsm serve` sets it when it listens on
        localhost only.
    log_requests, log_texts : bool, default=False
        Whether to log requests, and the texts in them.
    root_path : str, default=""
        The path prefix under which a proxy exposes the service.
    """

    max_body: int = MEGABYTE
    max_batch: int = 256
    max_waiting: int = 1024
    max_tags: int = 1000
    timeout: float = 30.0
    api_key_file: Path | None = None
    corrections: Path | None = None
    encoder: Path | None = None
    learn: bool = False
    save_every: float = 30.0
    allow_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    log_requests: bool = False
    log_texts: bool = False
    root_path: str = ""

    @cached_property
    def api_key(self) -> str | None:
        """The key, read from its file once."""
        return None if self.api_key_file is None else _read_key(self.api_key_file)

    def allows(self, key: str) -> bool:
        """Whether a request with this key may be answered; takes the same time for any key.

        Parameters
        ----------
        key : str
            The key of the request; empty if it has none.
        """
        return self.api_key is None or hmac.compare_digest(key.encode(), self.api_key.encode())

    def to_json(self) -> str:
        """The settings as JSON, for another process; the key itself stays in its file."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings from the output of `to_json`.

        Parameters
        ----------
        text : str
            The output of `to_json`.
        """
        values = json.loads(text)
        for name in ("api_key_file", "corrections", "encoder"):
            values[name] = None if values[name] is None else Path(values[name])
        for name in ("allow_origins", "allowed_hosts"):
            values[name] = tuple(values[name])
        return cls(**values)


def _read_key(path: Path) -> str:
    """The key in a file, without surrounding whitespace."""
    key = path.read_bytes().decode("utf-8", "replace").strip()
    if not key or not key.isascii() or not key.isprintable():
        problem = "is empty" if not key else "has characters other than printable ASCII"
        raise ValueError(f"The API key file must hold the key on one line. {path} {problem}.")
    return key
