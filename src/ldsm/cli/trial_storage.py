"""The SQLite file of ``ldsm tune --storage``: checked, then opened for Optuna."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import optuna

NAME = "ldsm"  # of the study
_TABLES = {"studies", "trials", "study_user_attributes", "trial_params", "trial_values"}


class OtherSearch(ValueError):
    """The file holds a search with other data or settings."""


@contextmanager
def stored_study(path: Path, check: Callable[[optuna.Study], None]) -> Iterator[optuna.Study]:
    """The study in a file, or a new one. `check` starts a new study or checks an existing one.

    Any problem with the file is a ValueError. A new file is removed on failure.
    """
    import optuna
    import sqlalchemy

    path = path.absolute()
    new = not path.exists()
    storage = None
    try:
        try:
            if not new:
                _check_tables(path)
            # Not by URL: characters of the path could have a special meaning there.
            storage = optuna.storages.RDBStorage(
                "sqlite://",
                engine_kwargs={
                    "creator": lambda: sqlite3.connect(path),
                    "poolclass": sqlalchemy.pool.NullPool,
                },
            )
            study = optuna.create_study(
                storage=storage, study_name=NAME, direction="maximize", load_if_exists=True
            )
            if study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
                raise ValueError("its study does not maximise one number")
            check(study)
        except OtherSearch:
            raise
        except Exception as error:  # a damaged file makes Optuna raise any kind
            _close(storage)
            if new:
                for file in (path, path.with_name(f"{path.name}-journal")):
                    file.unlink(missing_ok=True)
            raise _unusable(path, error) from error
        try:
            yield study
        except (
            sqlite3.Error,
            sqlalchemy.exc.SQLAlchemyError,
            optuna.exceptions.StorageInternalError,
        ) as error:
            raise _unusable(path, error) from error
    finally:
        _close(storage)


def _close(storage: Any) -> None:
    if storage is not None:  # optuna itself leaves its connections open
        storage.remove_session()
        storage.engine.dispose()


def _check_tables(path: Path) -> None:
    """Raise an error for a database of another program, or with views or triggers."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        entries = database.execute("SELECT type, name FROM sqlite_master").fetchall()
    if any(kind not in ("table", "index") for kind, _ in entries):
        raise ValueError("it holds views or triggers, which Optuna does not create")
    if entries and not {name for _, name in entries} >= _TABLES:
        raise ValueError("it is a database of another program, or incomplete")


def _unusable(path: Path, error: BaseException) -> ValueError:
    cause = error.__cause__ if error.__cause__ is not None else error
    reason = " ".join(str(getattr(cause, "orig", None) or cause).split()).rstrip(".")
    return ValueError(
        f"{path} cannot be used for --storage: {reason[:200] or type(cause).__name__}. Use another "
        "file, or free disk space if the disk is full."
    )
