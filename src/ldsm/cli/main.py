"""The command line ``ldsm``: commands, errors and exit codes.

Exit codes: 0 for success; 1 for a failure; 2 for wrong usage, which includes files that do not
exist; 130 for Ctrl-C (143 for SIGTERM). Results go to stdout; progress, notes and errors go to
stderr. Files are written completely or not at all.
"""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from .._version import __version__
from .command import command
from .convert import convert
from .demo import demo
from .evaluate import evaluate
from .explain import explain_command
from .inspect import inspect_command
from .labels import labels
from .learn import learn
from .options.estimator import EstimatorOptions
from .options.reader import Reader
from .options.tagger import TaggerOptions, WordOptions
from .predict import predict
from .report import report_command
from .screen import Screen
from .serve import serve
from .train import train
from .tune import tune

app = typer.Typer(
    name="ldsm",
    help="Multi-label decision trees: train models that tag texts or label rows of features.",
    epilog=(
        "Start with [bold]ldsm demo[/bold]: it needs no data and takes seconds. "
        "Exit codes: 0 for success, 1 for a failure, 2 for wrong usage, 130 for Ctrl-C."
    ),
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
command(app)(demo)
command(app, Reader, TaggerOptions, EstimatorOptions)(train)
command(app, Reader)(learn)
command(app, Reader)(predict)
command(app, Reader)(evaluate)
command(app, Reader)(report_command)
command(app)(inspect_command)
command(app)(labels)
command(app, Reader)(explain_command)
command(app)(serve)
command(app, Reader, WordOptions)(convert)
command(app, Reader, TaggerOptions, EstimatorOptions)(tune)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the terminal cannot encode are escaped instead of raising an error.
            stream.reconfigure(errors="backslashreplace")
    if threading.current_thread() is threading.main_thread():
        # Exit through an exception, so that incomplete files are removed.
        signal.signal(signal.SIGTERM, _stop)
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments or ["--help"], prog_name="ldsm", standalone_mode=False)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        # Typer's own errors have no public base class, but they have a message for users.
        if not hasattr(error, "format_message"):
            raise
        Screen().error(_usage_message(error))
        return int(getattr(error, "exit_code", 2))
    if not arguments:
        return 2  # no command was given
    return code if isinstance(code, int) else 0


def _usage_message(error: Any) -> str:
    message = str(error.format_message()).rstrip()
    if hasattr(error.__cause__, "errors"):  # newer versions of Typer leave out the value
        message = f"{message} Got {error.__cause__.errors()[0]['input']!r:.40}."
    path = getattr(getattr(error, "ctx", None), "command_path", "ldsm")
    return f"{message.removesuffix('.')}. Try '{path} --help'."


def _stop(number: int, frame: Any) -> NoReturn:
    raise SystemExit(128 + number)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ldsm {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
