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
from typing import Any, NamedTuple

import nbformat

from paperlib.core.checks import did_you_mean

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ZERO = re.compile(r"(?<![\w.,-])0(?![\w.,])")  # the number 0 by itself in a comment
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
    lines. A comment stands behind its parameter, or on lines of its own directly above it.
    """
    comments = {  # by line
        token.start[0]: token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    parameters: list[Parameter] = []
    for name, value, statement in _assignments(source, where):
        try:
            default = ast.literal_eval(value)
        except ValueError:
            text = ast.unparse(statement)
            raise ValueError(
                f"{where}: expected a literal value in the parameters cell, got {text}"
            ) from None
        parameters.append(Parameter(name, default, _comment_of(statement, comments)))
    return parameters


def _comment_of(node: ast.stmt, comments: Mapping[int, tokenize.TokenInfo]) -> str:
    r"""The comment behind a parameter; without one, the lines of comment directly above it, "" for
    none. ``node`` is its statement, and ``comments`` has those of the cell by the line's number.

    >>> above = "# of each audit; 0:\n# as many as there are\nrecords = 5"
    >>> parse_parameters(above, "demo")[0].comment
    'of each audit; 0: as many as there are'
    """
    behind = comments.get(node.end_lineno or node.lineno)
    if behind is not None:
        return behind.string.lstrip("# ")
    # Upwards over comments that begin their line: others are of the parameter before.
    first = node.lineno
    while first - 1 in comments and not comments[first - 1].start[1]:
        first -= 1
    return " ".join(comments[line].string.lstrip("# ") for line in range(first, node.lineno))


class _Assignment(NamedTuple):
    """A parameter as nodes of the syntax tree of its cell."""

    name: str
    value: Any  # the expression
    statement: ast.stmt


def _assignments(source: str, where: str) -> list[_Assignment]:
    """The parameters that a cell assigns, in order; a ValueError, which begins with ``where``, for
    a statement that is no ``name = value``.
    """
    assignments: list[_Assignment] = []
    for node in ast.parse(source).body:
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(
                ast.Name(name), _, ast.expr() as value
            ):
                assignments.append(_Assignment(name, value, node))
            case _:
                text = ast.unparse(node).splitlines()[0]
                raise ValueError(
                    f"{where}: the parameters cell holds more than 'name = value': {text}"
                )
    return assignments


def check_parameters(
    parameters: Sequence[Parameter], chosen: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Each parameter with its value, by name: chosen ones, as Python values or text, over the
    defaults.

    Raises:
        ValueError: An unknown name, or a value of another type or below the least one; the message
            begins with ``where``.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    unknown = sorted(set(chosen) - set(by_name))
    if unknown:
        listed = "".join(f"\n  {parameter}" for parameter in parameters) or " none"
        meant = did_you_mean(unknown[0], by_name)
        raise ValueError(
            f"{where}: unknown parameter {', '.join(map(repr, unknown))}{meant}; the known "
            f"ones are:{listed}"
        )
    values = {parameter.name: parameter.default for parameter in parameters}
    for name, value in chosen.items():
        values[name] = _checked_value(by_name[name], value, where)
    return values


def _checked_value(parameter: Parameter, value: Any, where: str) -> Any:
    """The value with the type of the parameter's default; a ValueError, which begins with
    ``where``, for one of another type, and below the parameter's least value.
    """
    comment = f" ({parameter.comment})" if parameter.comment else ""
    default = parameter.default
    least = parameter.least
    try:
        converted = convert_like(value, default)
    except (ValueError, SyntaxError):
        kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        kind = kinds.get(type(default), f"a {type(default).__name__}")
        raise ValueError(
            f"{where}: parameter {parameter.name!r} should be {kind} like {default!r}, got "
            f"{value!r}{comment}"
        ) from None
    if least is not None and converted < least:
        raise ValueError(
            f"{where}: parameter {parameter.name!r} should be {least} or more, got "
            f"{converted}{comment}"
        )
    return converted


def convert_like(value: Any, default: Any) -> Any:
    """``value``, not rounded, with the type of ``default``; a ValueError or SyntaxError for another
    type.

    Text is read as the command line gives it; a default of None takes text that is no literal of
    Python as it is.
    """
    if default is None:
        return _literal_or_text(value)
    if isinstance(default, str):
        return _require(value, str)
    if isinstance(default, bool):
        return _truth_value(value)
    if isinstance(default, int):
        return int(value) if isinstance(value, str) else _require(value, int)
    if isinstance(default, float):
        return _finite_number(value)
    container = _container(value) if isinstance(value, str) else value
    if isinstance(default, list | tuple):
        return _sequence_like(container, default)
    return _require(container, type(default))


def _literal_or_text(value: Any) -> Any:
    """Text that is a literal of Python as what it says, anything else as it is; so is 1e999, since
    no literal is infinite when it is written into the cell.
    """
    if not isinstance(value, str):
        return value
    try:
        literal = ast.literal_eval(value)
        ast.literal_eval(repr(literal))
        return literal
    except (ValueError, SyntaxError):
        return value


def _truth_value(value: Any) -> bool:
    """True or False, also of words such as "yes"; a ValueError for others."""
    if isinstance(value, str):
        value = _TRUTH.get(value.lower())
    return _require(value, bool)


def _finite_number(value: Any) -> float:
    """A number or a text of one as a float; a ValueError for others, infinity and NaN."""
    number = float(value if isinstance(value, str) else _require(value, int | float))
    if not math.isfinite(number):
        raise ValueError
    return number


def _container(text: str) -> Any:
    """What a text of a list or mapping says, in JSON or as a literal of Python; a ValueError or
    SyntaxError for other text.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return ast.literal_eval(text)
    except RecursionError:
        raise ValueError("brackets within brackets, too deep to be read") from None


def _sequence_like(value: Any, default: list[Any] | tuple[Any, ...]) -> Any:
    """A list or tuple as the type of ``default``, each item like the first one of that."""
    items = _require(list(value) if isinstance(value, tuple) else value, list)
    if default:
        items = [convert_like(item, default[0]) for item in items]
    return type(default)(items)


def _require(value: Any, kind: type | UnionType) -> Any:
    """The value if it is of a kind; a ValueError otherwise, and where True stands for a number."""
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

    Raises:
        ValueError: A word that is no ``name=value``, or a quote or bracket that is not closed.

    >>> split_assignments("a='two words' sizes=[1, 2] b=3")
    ['a=two words', 'sizes=[1, 2]', 'b=3']
    """
    words: list[str] = []
    rest = text.strip()
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
            value = _without_quotes(value)
        words.append(f"{name[1]}={value}")
        rest = rest[end:].lstrip()
    return words


def _without_quotes(text: str) -> str:
    """A word as a shell reads it, but that backslashes and # mean themselves."""
    reader = shlex.shlex(text, posix=True)
    reader.escape = ""
    reader.commenters = ""
    reader.whitespace = ""
    reader.whitespace_split = True
    return "".join(reader)


def _value_end(text: str) -> int:
    """Index behind the first value of a text: of the first space outside of quotes and of the
    brackets that the value begins with, else of the end; a ValueError for an open quote or bracket.
    """
    bracketed = text.startswith(_BRACKETS)  # further ones may follow semicolons
    depth = 0  # brackets that are open
    index = 0
    while index < len(text):
        letter = text[index]
        if letter in "'\"":
            index = _closing_quote(text, index, escapes=bracketed)
        elif letter.isspace() and depth <= 0:
            return index
        elif bracketed and letter in "[{(":
            depth += 1
        elif bracketed and letter in "]})":
            depth -= 1
        index += 1
    if depth > 0:
        raise ValueError(f"P: a bracket is not closed in {text}")
    return len(text)


def _closing_quote(text: str, start: int, *, escapes: bool) -> int:
    """Index of the quote that closes the one at ``start``, a ValueError where none does; with
    ``escapes`` none that follows a backslash.
    """
    quote = text[start]
    escaped = False
    for index in range(start + 1, len(text)):
        if text[index] == quote and not escaped:
            return index
        escaped = escapes and text[index] == "\\" and not escaped
    raise ValueError(f"P: the quote {quote} is not closed in {text}")


def assignment(name: str, value: Any) -> str:
    """A parameter as `split_assignments` and, after it, `check_parameters` read it."""
    if isinstance(value, list | tuple | dict):
        return f"{name}={json.dumps(value, separators=(',', ':'))}"
    text = str(value)
    parts_words = any(letter.isspace() or letter in "'\"" for letter in text)
    if text.startswith(_BRACKETS) or parts_words:
        text = _in_quotes(text)
    return f"{name}={text}"


def _in_quotes(text: str) -> str:
    r"""A text in quotes, as a shell reads it but for backslashes, which mean themselves.

    Quotes are of a kind that is not in the text. Where both kinds are, the pieces between single
    quotes stand in single quotes and these in double ones: what touches is one word.

    >>> print(_in_quotes("two words"), _in_quotes("it's"))
    'two words' "it's"
    >>> print(_in_quotes("it's \"so\""))
    'it'"'"'s "so"'
    """
    if "'" in text and '"' not in text:
        return f'"{text}"'
    pieces = [f"'{piece}'" if piece else "" for piece in text.split("'")]
    return '"\'"'.join(pieces)


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """The source of a parameter cell with other values by name; names, order and comments stay."""
    lines = source.splitlines()
    # From the last to the first, as a new value may have fewer lines than the old one.
    for name, value, _ in reversed(_assignments(source, "parameters")):
        if name not in values or values[name] == ast.literal_eval(value):
            continue
        first = value.lineno - 1
        last = value.end_lineno - 1
        # Offsets of the syntax tree count bytes.
        head = lines[first].encode()[: value.col_offset].decode()
        tail = lines[last].encode()[value.end_col_offset :].decode()
        lines[first : last + 1] = [f"{head}{values[name]!r}{tail}"]
    return "\n".join(lines)


def swept_values(
    parameters: Sequence[Parameter], words: Mapping[str, str], where: str
) -> dict[str, list[Any]]:
    """Name to the values that a word gives it, each checked against the notebook's own
    parameters.

    Raises:
        ValueError: An unknown name, a value of another type, no value, or one that is given twice.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    unknown = {name: None for name in words if name not in by_name}
    check_parameters(parameters, unknown, where)  # refuses them, if there are some
    return {name: _values_of(by_name[name], text, where) for name, text in words.items()}


def _values_of(parameter: Parameter, text: str, where: str) -> list[Any]:
    """The values that a word gives a parameter, checked; a ValueError for none, for a value of
    another type and for one that is given twice.

    Numbers, truth values and text stand between commas, whole numbers also as a range with both
    ends, text that holds commas as a JSON list; lists and mappings between semicolons.
    """
    name = parameter.name
    subject = f"{where}: parameter {name!r}"
    split = _containers if isinstance(parameter.default, list | tuple | dict) else _items
    words = split(parameter.default, text, subject)
    if not words:
        raise ValueError(f"{subject}: no value in {text!r}; give one or more, such as {name}=1,2")
    values = [_checked_value(parameter, word, where) for word in words]
    for index, value in enumerate(values):
        if value in values[:index]:
            raise ValueError(f"{subject}: {value!r} is given twice in {text!r}")
    return values


def _items(default: Any, text: str, subject: str) -> list[Any]:
    """The values that a text lists, still unchecked: words between commas, the whole numbers of a
    range such as 0..4, or the items of a JSON list.

    Ranges are for whole numbers, by the type of the ``default``, and where it is None. Raises
    ValueError, which begins with ``subject``, for a range without a number.
    """
    if text.lstrip().startswith("["):
        listed = _json_value(text)
        if listed is not None:
            return listed
    has_ranges = default is None or type(default) is int
    words: list[Any] = []
    for word in text.split(","):
        ends = _RANGE.fullmatch(word) if has_ranges else None
        if ends is None:
            words.append(word.strip())
            continue
        first, last = int(ends[1]), int(ends[2])
        if last < first:
            raise ValueError(f"{subject}: no number from {first} to {last}")
        words += range(first, last + 1)
    return words


def _containers(default: Any, text: str, subject: str) -> list[str]:
    """The texts of a parameter's values, where each value is a list or a dictionary in JSON.

    Text that is JSON as a whole is one value; else semicolons stand between the values. A
    ValueError, which names the ``subject``, for a value of another type than the ``default``.
    """
    texts = [text] if _json_value(text) is not None else text.split(";")
    texts = [value.strip() for value in texts]
    if isinstance(default, dict):
        opening, example = "{", '{"a":1};{"a":2}'
    else:
        opening, example = "([", "[20,50];[100]"
    if not all(value and value[0] in opening for value in texts):
        raise ValueError(
            f"{subject} is a {type(default).__name__}: write its values whole and with semicolons "
            f"between them, such as {example}; got {text!r}"
        )
    return texts


def _json_value(text: str) -> Any:
    """What a JSON text says; None for another text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None
