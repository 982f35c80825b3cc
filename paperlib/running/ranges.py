"""Several values of a parameter in one word, as a sweep takes them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from paperlib.running.parameters import Parameter, check_parameters

_RANGE = re.compile(r"\s*(-?\d+)\.\.(-?\d+)\s*")


def values_of_all(known: Sequence[Parameter], given: Mapping[str, str], where: str) -> dict[str, list[Any]]:
    """Name to its values, each checked against the notebook's own parameters.

    Args:
        known: The notebook's parameters.
        given: Name to the word that says its values, as `parameter_values` reads it.
        where: Name of the notebook, for messages.

    Raises:
        ValueError: An unknown name; the message lists the known ones. As `parameter_values` does.
    """
    by_name = {parameter.name: parameter for parameter in known}
    check_parameters(list(known), {name: by_name[name].default for name in given if name in by_name}, where)
    if unknown := {name: None for name in given if name not in by_name}:
        check_parameters(list(known), unknown, where)
    return {name: parameter_values(by_name[name], text, where) for name, text in given.items()}


def parameter_values(parameter: Parameter, text: str, where: str) -> list[Any]:
    """The values that a word names, in its order.

    Values of numbers, truth values and text stand between commas; whole numbers also as a range with both
    ends; text that holds commas as a JSON list. Values of lists and mappings stand between semicolons.

    Args:
        parameter: The parameter, whose default gives the type.
        text: The word.
        where: Name of the notebook, for messages.

    Raises:
        ValueError: A value of another type, an empty range, or a value given twice.

    >>> parameter_values(Parameter("seed", 0, ""), "0..2,7", "demo")
    [0, 1, 2, 7]
    >>> parameter_values(Parameter("epochs", [1], ""), "[1,2];[3]", "demo")
    [[1, 2], [3]]
    """
    default = parameter.default
    words = _containers if isinstance(default, list | tuple | dict) else _items
    values = [
        check_parameters([parameter], {parameter.name: word}, where)[parameter.name]
        for word in words(parameter, text, where)
    ]
    for at, value in enumerate(values):
        if value in values[:at]:
            raise ValueError(f"{where}: parameter {parameter.name!r}: {value!r} is given twice in {text!r}")
    return values


def _items(parameter: Parameter, text: str, where: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            return list(json.loads(text))
        except json.JSONDecodeError:
            pass
    counts = parameter.default is None or type(parameter.default) is int
    words: list[Any] = []
    for word in text.split(","):
        ends = _RANGE.fullmatch(word) if counts else None
        words += _range(parameter, int(ends[1]), int(ends[2]), where) if ends else [word.strip()]
    return words


def _range(parameter: Parameter, first: int, last: int, where: str) -> list[int]:
    if last < first:
        raise ValueError(f"{where}: parameter {parameter.name!r}: no number from {first} to {last}")
    return list(range(first, last + 1))


def _containers(parameter: Parameter, text: str, where: str) -> list[str]:
    """The word as one value where it is one, else its parts between semicolons."""
    opening = "{" if isinstance(parameter.default, dict) else "(["
    parts = [text.strip()] if _is_json(text) else [part.strip() for part in text.split(";")]
    if not all(part and part[0] in opening for part in parts):
        example = '{"a":1};{"a":2}' if isinstance(parameter.default, dict) else "[20,50];[100]"
        kind = type(parameter.default).__name__
        raise ValueError(
            f"{where}: parameter {parameter.name!r} is a {kind}: write its values "
            f"whole and with semicolons between them, such as {example}; got {text!r}"
        )
    return parts


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True
