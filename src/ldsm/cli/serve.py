"""``ldsm serve``: run a web service that tags texts."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from .._storage.atomic import check_writable
from .command import wrong_use
from .options.model import EncoderOption
from .screen import Screen

_SIZES = {"": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_LARGEST = 1000**3


class Logged(str, Enum):
    """What to log."""

    errors = "errors"
    requests = "requests"
    texts = "texts"


def serve(
    screen: Screen,
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...", exists=True, dir_okay=False, help="Model files that read texts."
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all interfaces.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")
    ] = 8000,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="Require the API key in this file."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of worker processes.")] = 1,
    max_body: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", show_default="1MB", help="Maximum request size, such as 200kB or 1MB."
        ),
    ] = None,
    max_batch: Annotated[
        int | None,
        typer.Option(min=1, show_default="256", help="Maximum number of texts per request."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=3600,
            show_default="30",
            help="Time limit for a request, in seconds.",
        ),
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn corrections as they arrive.")
    ] = False,
    corrections: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Folder for correction files. [dim]\\[default: next to the models][/dim]",
        ),
    ] = None,
    encoder: EncoderOption = None,
    root_path: Annotated[
        str,
        typer.Option(metavar="PATH", help="Path prefix under which a proxy exposes the service."),
    ] = "",
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="Web site whose pages may call the service; may be repeated."
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Host name to accept besides localhost; may be repeated. "
            "[dim]\\[default: none if --host is localhost, else any][/dim]",
            show_default=False,
        ),
    ] = None,
    log: Annotated[Logged, typer.Option(help="What to log to stderr.")] = Logged.errors,
) -> None:
    """Run a web service that tags texts, with a web page and an API.

    The page is at /, the API reference at /docs, Prometheus metrics at /metrics. Programs can use
    the API of Annif (/v1/projects/MODEL/suggest) or the Open Inference Protocol
    (/v2/models/MODEL/infer). MODEL is the file name without .ldsm.

    When a model file changes, it is reloaded. Corrections from the page are saved to
    MODEL.corrections.jsonl, for ldsm learn. With --learn, the service learns them as they arrive
    and saves the model every 30 seconds.

    Needs fastapi, uvicorn and prometheus-client: pip install "ldsm\\[serve]".
    """
    from ..serve.http.hosts import is_host  # slow to import
    from ..serve.settings import Settings

    if root_path and not re.fullmatch(r"(/[\w.~-]+)+", root_path):
        raise wrong_use(f"must look like /tags, got {root_path!r}.", "--root-path")
    if root_path.split("/")[1:2] in (["v1"], ["v2"]):
        raise wrong_use(f"must not start with /v1 or /v2, got {root_path!r}.", "--root-path")
    for origin in allow_origin or ():
        if origin != "*" and not re.fullmatch(r"https?://[^\s/]+", origin):
            raise wrong_use(
                f"must look like https://example.org, got {origin!r}.", "--allow-origin"
            )
    for name in allowed_host or ():
        if not is_host(name):
            raise wrong_use(
                f"must be a host without a port, such as tags.example.org, got {name!r}.",
                "--allowed-host",
            )
    limits: dict[str, Any] = {
        "max_body": None if max_body is None else _bytes(max_body),
        "max_batch": max_batch,
        "timeout": timeout,
    }
    settings = Settings(
        # Settings has the defaults.
        **{name: value for name, value in limits.items() if value is not None},
        api_key_file=None if api_key_file is None else api_key_file.absolute(),
        corrections=None if corrections is None else corrections.absolute(),
        encoder=None if encoder is None else encoder.absolute(),
        learn=learn,
        allow_origins=tuple(allow_origin or ()),
        allowed_hosts=tuple(allowed_host or ()),
        log_requests=log is not Logged.errors,
        log_texts=log is Logged.texts,
        root_path=root_path,
    )
    run_service(screen, models, settings, host=host, port=port, workers=workers)


def run_service(
    screen: Screen, paths: list[Path], settings: Any, *, host: str, port: int, workers: int = 1
) -> None:
    """Serve the models until Ctrl-C; raise errors before listening where possible."""
    from ..serve.corrections import CorrectionFile
    from ..serve.models import name_of
    from ..serve.run import address_of, listening, run

    _ = settings.api_key
    folders = {path.absolute().parent for path in paths}
    if settings.learn:
        for path in paths:
            check_writable(os.path.dirname(os.path.realpath(path)))  # where the model is replaced
    for path in paths:
        CorrectionFile.of(path, settings.corrections).check()
    for folder in {settings.corrections} if settings.corrections else folders:
        try:
            check_writable(str(folder))
        except OSError as error:
            screen.note(
                f"warning: cannot save corrections in {folder} ({error.strerror}); "
                "use --corrections to choose another folder",
                style="yellow",
            )
    with listening(host, port) as listener:
        address, names = address_of(listener, settings.root_path), [*map(name_of, paths)]

        def ready() -> None:
            if screen.json:
                screen.data({"address": address, "models": names})
            else:
                screen.note(f"{', '.join(names)}: {address} (press Ctrl-C to stop)")

        run(paths, settings, listener, workers, ready)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *(|kB|MB|GB)", text.strip())
    size = 0.0 if found is None else float(found[1]) * _SIZES[found[2]]
    if not 1 <= size <= _LARGEST:
        raise wrong_use(
            f"must be a size up to 1GB, such as 200kB or 1MB, got {text[:40]!r}.", "--max-body"
        )
    return int(size)
