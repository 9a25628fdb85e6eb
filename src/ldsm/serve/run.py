"""Run the application on a socket, in one process or in several."""

from __future__ import annotations

import json
import logging
import os
import resource
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from .app import create_app
from .http.hosts import hosts_of
from .http.protocol import LimitedProtocol
from .models import Models, encoder_of
from .settings import Settings

MODELS, SETTINGS = "LDSM_SERVE_MODELS", "LDSM_SERVE_SETTINGS"  # of the environment
_BACKLOG = 2048
_RECEIVE_BUFFER, _SEND_BUFFER = 1 << 16, 1 << 18  # bytes
_MAX_FILES = 65536


def listening(host: str, port: int) -> socket.socket:
    """A listening socket; an OSError names the address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit these. Without TCP_NODELAY, some small answers wait for 40 ms.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Otherwise the system buffers megabytes for clients that send fast or read slowly.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    listener.set_inheritable(True)
    return listener


def address_of(listener: socket.socket, root_path: str = "") -> str:
    """The URL of the service for browsers."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{port}{root_path}/"


def run(
    models: Sequence[Path],
    settings: Settings,
    listener: socket.socket,
    workers: int,
    ready: Callable[[], None],
) -> None:
    """Serve until a signal arrives; `ready` is called when the models are loaded."""
    _allow_many_connections()
    settings = replace(settings, allowed_hosts=hosts_of(listener, settings.allowed_hosts))
    options: dict[str, Any] = {
        "fd": listener.fileno(),
        "http": LimitedProtocol,
        "ws": "none",
        "log_config": _logging(settings),
        "access_log": settings.log_requests,
        "server_header": False,
        "timeout_graceful_shutdown": int(settings.timeout) + 1,
    }
    if workers == 1:
        app = create_app(models, settings)
        ready()
        uvicorn.run(app, **options)
        return
    Models(models, encoder=encoder_of(settings))  # report errors once, not once per process
    with tempfile.TemporaryDirectory(prefix="ldsm-metrics-") as folder, ExitStack() as stack:
        environment = {
            MODELS: json.dumps([str(path.absolute()) for path in models]),
            SETTINGS: settings.to_json(),
            "PROMETHEUS_MULTIPROC_DIR": folder,  # where the processes share metrics
        }
        for name, value in environment.items():
            os.environ[name] = value
            stack.callback(os.environ.pop, name)
        ready()
        uvicorn.run(f"{__name__}:app_from_environment", factory=True, workers=workers, **options)


def _allow_many_connections() -> None:
    """Raise the limit on open files, because each connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def app_from_environment() -> FastAPI:
    """The application of a worker process, configured by its parent."""
    models = [Path(path) for path in json.loads(os.environ[MODELS])]
    return create_app(models, Settings.from_json(os.environ[SETTINGS]))


def _logging(settings: Settings) -> dict[str, Any]:
    """One line per event, to stderr; requests and texts only if requested."""
    level = logging.INFO if settings.log_requests or settings.log_texts else logging.WARNING
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {
            "ldsm.serve": {"handlers": ["stderr"], "level": level, "propagate": False},
            "uvicorn": {"handlers": ["stderr"], "level": level, "propagate": False},
            "uvicorn.access": {"handlers": ["stderr"], "level": level, "propagate": False},
        },
    }
