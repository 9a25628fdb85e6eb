"""What a service is told when it starts."""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

MEGABYTE = 1_000_000
# Where an application leaves `timeout` for its server, in the state that the two share.
TIMEOUT_STATE = "ldsm_timeout"


@dataclass(frozen=True)
class Settings:
    """Limits and places of a service.

    Attributes
    ----------
    max_body : int, default=1,000,000
        Bytes of a request.
    max_batch : int, default=256
        Texts of a request, and texts that are answered together.
    max_waiting : int, default=1024
        Texts that wait for an answer; requests beyond that are told to come back later.
    max_tags : int, default=1000
        Tags of an answer.
    timeout : float, default=30
        Seconds for a request, and again for reading its answer.
    api_key_file : path, optional
        A file with a key in one line. Requests must come with it, except for the page itself and
        the health of the service.
    corrections : path, optional
        The folder of the files of corrections; None: beside the models.
    learn : bool, default=False
        Whether corrections are learned at once.
    save_every : float, default=30
        Seconds between two saves of a model that learns.
    allow_origins : tuple of str, default=()
        Web sites whose pages may ask the service.
    allowed_hosts : tuple of str, default=()
        Host names, without a port, that the service answers for; empty: any. `ldsm serve` fills
        it in when it listens on this machine only.
    log_requests, log_texts : bool, default=False
        Whether requests, and the texts in them, are logged.
    root_path : str, default=""
        The path below which a proxy offers the service.
    """

    max_body: int = MEGABYTE
    max_batch: int = 256
    max_waiting: int = 1024
    max_tags: int = 1000
    timeout: float = 30.0
    api_key_file: Path | None = None
    corrections: Path | None = None
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
            What the request came with; empty if nothing.
        """
        return self.api_key is None or hmac.compare_digest(key.encode(), self.api_key.encode())

    def to_json(self) -> str:
        """For another process; the key itself stays in its file."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON.
        """
        values = json.loads(text)
        for name in ("api_key_file", "corrections"):
            values[name] = None if values[name] is None else Path(values[name])
        for name in ("allow_origins", "allowed_hosts"):
            values[name] = tuple(values[name])
        return cls(**values)


def _read_key(path: Path) -> str:
    """The key that a file holds, without blanks around it."""
    key = path.read_bytes().decode("utf-8", "replace").strip()
    if not key or not key.isascii() or not key.isprintable():
        problem = "is empty" if not key else "has other characters than ASCII can print"
        raise ValueError(f"The file of the API key must hold a key in one line. {path} {problem}.")
    return key
