"""Turn a function into a command: bundles of shared options, error messages, exit codes."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import typer

from .._wording import arguments_as
from .screen import Screen

# Exit codes. 2, wrong usage, comes from Typer and from `wrong_use`.
FAILURE = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells count

# Arguments whose options have another name.
_OPTIONS = {
    "text": "text_field",
    "labels": "label_field",
    "checkpoint_dir": "checkpoint",
    "random_state": "seed",
}

Result = TypeVar("Result", covariant=True)


class Bundle(Protocol[Result]):
    """Options that several commands share, collected into one object."""

    @staticmethod
    def options() -> Sequence[inspect.Parameter]: ...

    @staticmethod
    def collect(values: dict[str, Any]) -> Result: ...


def option(name: str, kind: Any, default: Any, *names: str, **settings: Any) -> inspect.Parameter:
    """One option, as Typer reads it from a signature."""
    annotation = Annotated[kind, typer.Option(*names, **settings)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)


def command(app: typer.Typer, *bundles: type[Bundle[Any]]) -> Callable[[Any], Any]:
    """Register a function as a command.

    Its first argument is a `Screen`, followed by one object per bundle; the rest are its own
    arguments and options. Every command gets ``--json``, ``--quiet`` and ``--debug``.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())
        own = own[1 + len(bundles) :]
        groups = [list(bundle.options()) for bundle in bundles]

        @functools.wraps(function)
        def run(**values: Any) -> None:
            screen = Screen(json=values.pop("json"), quiet=values.pop("quiet"))
            debug = values.pop("debug")
            collected = [
                bundle.collect({item.name: values.pop(item.name) for item in group})
                for bundle, group in zip(bundles, groups, strict=True)
            ]

            def show(message: Warning | str, *where: Any, **more: Any) -> None:
                screen.note(f"warning: {message}", style="yellow")

            with warnings.catch_warnings(), arguments_as(_option_of), screen.until_end:
                warnings.showwarning = show
                _guarded(lambda: function(screen, *collected, **values), screen, debug)

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        parameters += [item for group in groups for item in group]
        parameters += _common_options()
        # Typer reads the signature; older versions also read the annotations.
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {item.name: item.annotation for item in parameters}
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        app.command(name=function.__name__.removesuffix("_command"), help=text)(run)
        return run

    return register


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Given options as words of a command."""
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
            continue
        for item in value if isinstance(value, list) else [value]:
            words += [flag, str(item)]
    return words


def wrong_use(message: str, where: str | None = None) -> typer.BadParameter:
    """The error for a wrong argument: exit code 2."""
    return typer.BadParameter(message, param_hint=where)


def program() -> str:
    """This command as a shell finds it, for commands to paste."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m ldsm"
    found = shutil.which("ldsm")
    if called.name != "ldsm" or not called.exists():
        return "ldsm"
    if found is not None and os.path.samefile(found, called):
        return "ldsm"
    return shlex.quote(str(called))


def _option_of(argument: str) -> str:
    """The option that messages name instead of a Python argument."""
    return f"--{_OPTIONS.get(argument, argument).replace('_', '-')}"


def _common_options() -> list[inspect.Parameter]:
    panel = "Every command"
    texts = {
        "json": "Print results to stdout as JSON.",
        "quiet": "Print only results and errors, no progress or notes.",
        "debug": "Show the traceback of an error.",
    }
    names = {"quiet": ("--quiet", "-q")}
    return [
        option(
            name, bool, False, *names.get(name, (f"--{name}",)), help=text, rich_help_panel=panel
        )
        for name, text in texts.items()
    ]


def _guarded(work: Callable[[], None], screen: Screen, debug: bool) -> None:
    """Run the work; an error becomes one sentence and an exit code."""
    try:
        work()
        screen.flush()
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt as error:
        screen.error(f"{str(error) or 'interrupted'}; no incomplete files are left.")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader, such as `head`, has exited. Flushing the buffer must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILURE) from None
    except Exception as error:
        if debug:
            raise
        screen.error(sentence(error))
        raise typer.Exit(FAILURE) from None


def sentence(error: Exception) -> str:
    """The error as a sentence for users."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fspath(error.filename)!r}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"out of memory. {error}".strip()
    if isinstance(error, (ValueError, OSError, ImportError)) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error} (use --debug for a traceback)"
