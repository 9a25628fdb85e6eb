"""The estimator's parameters as options, taken from its signature, constraints and docstring.

Names and defaults come from ``LdSMClassifier.__init__``, the allowed values from
``_trees.params.CONSTRAINTS``, the help from the docstring. An option that is not given keeps the
estimator's default.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ..._trees.params import CONSTRAINTS, Choice, Flag, NonZero, Number, Rule
from ...classifier import LdSMClassifier
from ..command import option, wrong_use

_PANEL = "Trees: the parameters of LdSMClassifier"
# A parameter without a declared constraint (random_state also takes objects) is an integer.
_UNDECLARED: tuple[Rule, ...] = (Choice((None,)), Number(0, integer=True))
_WORDS = {"none": None, "true": True, "false": False, "yes": True, "no": False}


class EstimatorOptions(dict[str, Any]):
    """The given parameters by name; a bundle of options."""

    file: Path | None = None  # source of some of them

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        # One seed for everything that a command draws: it has its own option.
        names = [name for name in defaults() if name != "random_state"]
        parameters = [
            parameter_option(
                name, defaults()[name], _rules(name), described().get(name, ""), _PANEL
            )
            for name in names
        ]
        parameters.append(
            option(
                "params",
                Path | None,
                None,
                metavar="FILE",
                exists=True,
                dir_okay=False,
                help="JSON file of parameters, as from `ldsm tune -o`; options take precedence.",
                rich_help_panel=_PANEL,
            )
        )
        return parameters

    def seeded(self, seed: int | None) -> int:
        """The given seed, of the options or the file, or the default; it is stored."""
        if seed is not None:
            self["random_state"] = seed
        return int(self.setdefault("random_state", defaults()["random_state"]) or 0)

    @staticmethod
    def collect(values: dict[str, Any]) -> EstimatorOptions:
        file = values.pop("params")
        chosen = EstimatorOptions({} if file is None else read_params(file))
        chosen.file = file
        for name, value in values.items():
            if _is_switch(_rules(name)):
                if value:
                    chosen[name] = not defaults()[name]
            elif value is not None:
                chosen[name] = parse(name, value)
        return chosen


SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        show_default=False,
        help="Random seed: the same data and options give the same model. "
        "[dim]\\[default: 0][/dim]",
    ),
]


def defaults() -> dict[str, Any]:
    """Every parameter of the estimator with its default."""
    signature = inspect.signature(LdSMClassifier.__init__)
    return {p.name: p.default for p in signature.parameters.values() if p.name != "self"}


def parse(name: str, text: str, rules: Sequence[Rule] | None = None) -> Any:
    """The value of an option's text; wrong usage if the parameter does not allow it."""
    rules = _rules(name) if rules is None else rules
    for value in _readings(text):
        for rule in rules:
            if rule.allows(value):
                return value
    allowed = " or ".join(str(rule) for rule in rules)
    raise wrong_use(f"must be {allowed}, got {text!r}.", flag(name))


def read_params(file: Path) -> dict[str, Any]:
    """Parameters from a JSON object; the values are checked like options."""
    try:
        params = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise wrong_use(f"{file} is not JSON: {error}.", "--params") from None
    if not isinstance(params, dict) or not params.keys() <= defaults().keys():
        unknown = sorted(params.keys() - defaults().keys()) if isinstance(params, dict) else ""
        raise wrong_use(f"{file} must hold an object of parameters, got {unknown}.", "--params")
    for name, value in params.items():
        if not any(rule.allows(value) for rule in _rules(name)):
            parse(name, str(value))  # raises an error with the allowed values
    return params


def flag(name: str) -> str:
    """The option of a parameter; a switch inverts its default."""
    turned_off = _is_switch(_rules(name)) and defaults()[name]
    return f"--{'no-' if turned_off else ''}{name.replace('_', '-')}"


@cache
def described() -> Mapping[str, str]:
    """The docstring's description of each parameter, on one line."""
    return describe(LdSMClassifier)


def describe(owner: type) -> dict[str, str]:
    """The "Parameters" section of a numpydoc docstring: texts by name."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)",
        inspect.getdoc(owner) or "",
        re.MULTILINE | re.DOTALL,
    )
    texts: dict[str, str] = {}
    for entry in re.finditer(
        r"^(\w[^\n:]*?) *(?::[^\n]*)?\n((?:[ \t]+[^\n]*\n?|\n)*)",
        section[1] if section else "",
        re.M,
    ):
        text = " ".join(entry[2].split()).replace("``", "`")
        for name in entry[1].split(","):
            texts[name.strip()] = text
    return texts


def _readings(text: str) -> list[Any]:
    """The values that a word on the command line may mean, the most specific first."""
    readings: list[Any] = [_WORDS[text.lower()]] if text.lower() in _WORDS else []
    for kind in (int, float):
        try:
            readings.append(kind(text))
        except ValueError:
            continue
    return [*readings, text]


def parameter_option(
    name: str, default: Any, rules: Sequence[Rule], text: str, panel: str
) -> inspect.Parameter:
    """The option of an estimator's parameter, described by `text`; `parse` reads its value."""
    settings: dict[str, Any] = {"rich_help_panel": panel, "show_default": False}
    if _is_switch(rules):
        # One switch, away from the default: a pair would add a column to the help.
        text = escape(f"Do not {text[0].lower()}{text[1:]}" if default else text)
        return option(name, bool, False, flag(name), help=text, **settings)
    allowed = " or ".join(str(rule) for rule in rules)
    text = f"{escape(text)} [dim]\\[{escape(allowed)}; default: {escape(str(default))}][/dim]"
    return option(
        name, str | None, None, flag(name), metavar=_metavar(rules), help=text, **settings
    )


def _rules(name: str) -> Sequence[Rule]:
    return CONSTRAINTS.get(name, _UNDECLARED)


def _is_switch(rules: Sequence[Rule]) -> bool:
    return all(isinstance(rule, Flag) for rule in rules)


def _metavar(rules: Sequence[Rule]) -> str:
    if any(isinstance(rule, NonZero) for rule in rules):
        return "INT"
    numbers = [rule for rule in rules if isinstance(rule, Number)]
    if not numbers:
        return "VALUE"
    return "INT" if numbers[0].integer else "FLOAT"
