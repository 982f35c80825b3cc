"""A notebook's parameters: read from its own cell, checked before a run, written back into the
cell.
"""

import ast
import io
import json
import math
import re
import shlex
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

import nbformat

from paperlib.core import did_you_mean

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ZERO = re.compile(r"(?<![\w.,-])0(?![\w.,])")
_NAME = re.compile(r"([^\W\d]\w*)=")
_RANGE = re.compile(r"\s*(-?\d+)\.\.(-?\d+)\s*")
_BRACKETS = ("[", "{", "(")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook: its name, default value and comment."""

    name: str
    default: Any
    comment: str

    def __str__(self) -> str:
        return f"{self.name} = {self.default!r}" + (f"  # {self.comment}" if self.comment else "")

    @property
    def least(self) -> int | None:
        """The smallest whole number it may be, 0 where its comment says what 0 means; None for no
        count.

        >>> side = Parameter("side", 7, "pixels; 0 keeps them")
        >>> Parameter("trials", 20, "audits").least, side.least
        (1, 0)
        """
        if type(self.default) is not int or self.default < 0:
            return None
        return 0 if self.default == 0 or _ZERO.search(self.comment) else 1


def read_notebook(path: Path) -> Any:
    """The notebook as nbformat 4; a ValueError for another file."""
    try:
        return nbformat.read(path, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a notebook ({str(error).splitlines()[0][:200]})") from None


def parameters_cell(notebook: Any, name: str) -> Any:
    """The cell tagged ``parameters``; a ValueError where there is none, or more than one."""
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise ValueError(f"{name}: expected one cell tagged 'parameters', found {len(tagged)}")
    return tagged[0]


def notebook_parameters(path: Path) -> list[Parameter]:
    """The parameters of a notebook in their order; a ValueError where its cell holds more than
    literals.
    """
    return parse_parameters(parameters_cell(read_notebook(path), path.name).source, path.name)


def parse_parameters(source: str, where: str) -> list[Parameter]:
    """The parameters that a cell's source assigns; a ValueError for all but ``name = literal``
    lines.
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    parameters: list[Parameter] = []
    for name, value, node in _assignments(source, where):
        try:
            default = ast.literal_eval(value)
        except ValueError:
            wanted = "a literal value in the parameters cell"
            raise ValueError(f"{where}: expected {wanted}, got {ast.unparse(node)}") from None
        parameters.append(
            Parameter(name, default, comments.get(node.end_lineno or node.lineno, ""))
        )
    return parameters


def _assignments(source: str, where: str) -> list[tuple[str, Any, ast.stmt]]:
    """Name, value and statement of each parameter."""
    found: list[tuple[str, Any, ast.stmt]] = []
    for node in ast.parse(source).body:
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(
                ast.Name(name), _, ast.expr() as value
            ):
                found.append((name, value, node))
            case _:
                text = ast.unparse(node).splitlines()[0]
                raise ValueError(
                    f"{where}: the parameters cell holds more than 'name = value': {text}"
                )
    return found


def check_parameters(
    known: Sequence[Parameter], given: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Every parameter with its value: given ones, as Python values or text, over the defaults."""
    by_name = {parameter.name: parameter for parameter in known}
    if unknown := sorted(set(given) - set(by_name)):
        listed = "".join(f"\n  {parameter}" for parameter in known) or " none"
        meant = did_you_mean(unknown[0], by_name)
        raise ValueError(
            f"{where}: unknown parameter {', '.join(map(repr, unknown))}{meant}; the known "
            f"ones are:{listed}"
        )
    values = {parameter.name: parameter.default for parameter in known}
    for name, value in given.items():
        parameter = by_name[name]
        about = f" ({parameter.comment})" if parameter.comment else ""
        default, least = parameter.default, parameter.least
        try:
            converted = convert_like(value, default)
        except (ValueError, SyntaxError):
            kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
            kind = kinds.get(type(default), f"a {type(default).__name__}")
            raise ValueError(
                f"{where}: parameter {name!r} should be {kind} like {default!r}, got "
                f"{value!r}{about}"
            ) from None
        if least is not None and converted < least:
            raise ValueError(
                f"{where}: parameter {name!r} should be {least} or more, got {converted}{about}"
            )
        values[name] = converted
    return values


def convert_like(value: Any, default: Any) -> Any:
    """``value``, not rounded, with the type of ``default``; a ValueError or SyntaxError for another
    type.
    """
    if default is None:
        try:
            return ast.literal_eval(value) if isinstance(value, str) else value
        except (ValueError, SyntaxError):
            return value
    if isinstance(default, str):
        return _require(value, str)
    if isinstance(default, bool):
        return _require(_TRUTH.get(value.lower()) if isinstance(value, str) else value, bool)
    if isinstance(default, int):
        return int(value) if isinstance(value, str) else _require(value, int)
    if isinstance(default, float):
        number = float(value if isinstance(value, str) else _require(value, int | float))
        return number if math.isfinite(number) else _require(None, float)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            value = ast.literal_eval(value)
    if isinstance(default, list | tuple):
        items = _require(list(value) if isinstance(value, tuple) else value, list)
        return type(default)(convert_like(item, default[0]) if default else item for item in items)
    return _require(value, type(default))


def _require(value: Any, kind: type | UnionType) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError
    return value


def parse_assignments(words: list[str]) -> dict[str, str]:
    """``name=value`` words as a mapping; a ValueError for a word without ``=``, or a name given
    twice.

    >>> parse_assignments(["m=100", "delta=1e-5"])
    {'m': '100', 'delta': '1e-5'}
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ValueError(f"parameter: expected name=value, got {word!r}")
        if name.strip() in values:
            raise ValueError(f"parameter: {name.strip()!r} is given twice")
        values[name.strip()] = value.strip()
    return values


def split_assignments(text: str) -> list[str]:
    """``name=value`` words of one line, such as the P of ``make run``.

    Values with spaces stand in quotes or begin with a bracket. Backslashes and dollar signs stay as
    they are.

    >>> split_assignments("a='two words' sizes=[1, 2] b=3")
    ['a=two words', 'sizes=[1, 2]', 'b=3']
    """
    words, rest = list[str](), text.strip()
    while rest:
        name = _NAME.match(rest)
        if name is None:
            raise ValueError(
                f"P: expected name=value, got {rest.split()[0]!r}; put a value with spaces in "
                "quotes, such as P=\"members='my rows.csv' seed=1\""
            )
        rest = rest[name.end() :]
        end = _value_end(rest)
        value = rest[:end]
        if not value.startswith(_BRACKETS):
            reader = shlex.shlex(value, posix=True)
            reader.escape, reader.commenters, reader.whitespace, reader.whitespace_split = (
                "",
                "",
                "",
                True,
            )
            value = "".join(reader)
        words.append(f"{name[1]}={value}")
        rest = rest[end:].lstrip()
    return words


def _value_end(text: str) -> int:
    """Where the first value ends: at a space outside of quotes and of the brackets that it begins
    with.
    """
    bracketed = text.startswith(_BRACKETS)  # further ones may follow semicolons
    depth, quote, escaped = 0, "", False
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = bracketed and letter == "\\" and not escaped
        elif letter in "'\"":
            quote = letter
        elif bracketed and letter in "[{(":
            depth += 1
        elif bracketed and letter in "]})":
            depth -= 1
        elif depth <= 0 and letter.isspace():
            return at
    if quote or depth > 0:
        raise ValueError(
            f"P: {'the quote ' + quote if quote else 'a bracket'} is not closed in {text}"
        )
    return len(text)


def assignment(name: str, value: Any) -> str:
    """A parameter as `split_assignments` and, after it, `check_parameters` read it."""
    if isinstance(value, list | tuple | dict):
        return f"{name}={json.dumps(value, separators=(',', ':'))}"
    text = str(value)
    if text.startswith(_BRACKETS) or set(" \t\n\r'\"").intersection(text):
        # In quotes of the other kind where one kind is in it; no backslashes, which mean
        # themselves.
        parts = [f"'{part}'" if part else "" for part in text.split("'")]
        text = f'"{text}"' if '"' not in text and len(parts) > 1 else '"\'"'.join(parts)
    return f"{name}={text}"


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """The parameter cell with other values; names, order and comments stay."""
    lines = source.splitlines()
    for name, value, _ in reversed(_assignments(source, "parameters")):
        if name not in values or values[name] == ast.literal_eval(value):
            continue
        first, last = value.lineno - 1, value.end_lineno - 1
        # Offsets of the syntax tree count bytes.
        head = lines[first].encode()[: value.col_offset].decode()
        tail = lines[last].encode()[value.end_col_offset :].decode()
        lines[first : last + 1] = [f"{head}{values[name]!r}{tail}"]
    return "\n".join(lines)


def swept_values(
    known: Sequence[Parameter], given: Mapping[str, str], where: str
) -> dict[str, list[Any]]:
    """Name to the values that a word gives it, each checked against the notebook's own
    parameters.
    """
    # Numbers, truth values and text stand between commas, whole numbers also as a range with both
    # ends, text that holds commas as a JSON list; lists and mappings between semicolons.
    by_name = {parameter.name: parameter for parameter in known}
    check_parameters(known, {name: None for name in given if name not in by_name}, where)
    all_values = dict[str, list[Any]]()
    for name, text in given.items():
        parameter = by_name[name]
        split = _containers if isinstance(parameter.default, list | tuple | dict) else _items
        about = f"{where}: parameter {name!r}"
        if not (words := split(parameter.default, text, about)):
            raise ValueError(f"{about}: no value in {text!r}; give one or more, such as {name}=1,2")
        values = [check_parameters([parameter], {name: word}, where)[name] for word in words]
        for at, value in enumerate(values):
            if value in values[:at]:
                raise ValueError(f"{about}: {value!r} is given twice in {text!r}")
        all_values[name] = values
    return all_values


def _items(default: Any, text: str, about: str) -> list[Any]:
    if text.lstrip().startswith("[") and (listed := _json_value(text)) is not None:
        return listed
    words: list[Any] = []
    for word in text.split(","):
        ends = _RANGE.fullmatch(word) if default is None or type(default) is int else None
        if ends is None:
            words.append(word.strip())
            continue
        first, last = int(ends[1]), int(ends[2])
        if last < first:
            raise ValueError(f"{about}: no number from {first} to {last}")
        words += range(first, last + 1)
    return words


def _containers(default: Any, text: str, about: str) -> list[str]:
    """The word as one value where it is one, else its parts between semicolons."""
    whole = _json_value(text) is not None
    parts = [text.strip()] if whole else [part.strip() for part in text.split(";")]
    opening, example = (
        ("{", '{"a":1};{"a":2}') if isinstance(default, dict) else ("([", "[20,50];[100]")
    )
    if not all(part and part[0] in opening for part in parts):
        raise ValueError(
            f"{about} is a {type(default).__name__}: write its values whole and with semicolons "
            f"between them, such as {example}; got {text!r}"
        )
    return parts


def _json_value(text: str) -> Any:
    """What a JSON text says; None for another text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None
