"""`audit.yaml`: what a report says about the audited model, checked by its JSON schema."""

import json
from dataclasses import asdict, dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.core.checks import did_you_mean
from paperlib.reading.files import read_file

_LONGEST = 100_000  # characters of a file
_DEEPEST = 10  # lists or mappings within each other


@dataclass(frozen=True, kw_only=True)
class About:
    """The audited model in its owner's words; an empty field is shown as "not given"."""

    model: str = ""
    version: str = ""
    owner: str = ""  #: who answers for the model
    trained: str = ""  #: date on which training ended, as YYYY-MM-DD
    data: str = ""  #: training data and audit records
    contact: str = ""
    notes: str = ""

    def to_dict(self) -> dict[str, str]:
        """Every field as text."""
        return asdict(self)


def about_schema() -> dict[str, Any]:
    """The JSON schema of ``audit.yaml``."""
    return json.loads(Path(__file__).with_name("about.schema.json").read_text(encoding="utf-8"))


def result_schema() -> dict[str, Any]:
    """The JSON schema of what ``paperlib audit --json`` prints, and of the block inside a
    report.
    """
    return json.loads(Path(__file__).with_name("result.schema.json").read_text(encoding="utf-8"))


def read_about(path: "str | PathLike[str]") -> About:
    """Read and check a YAML file with fields of `About`, each as text: a version 2.10 stays "2.10".

    Raises:
        ValueError: No such file, no YAML, an unknown key or a value that the schema does not allow.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "audit.yaml"
    ...     _ = file.write_text("model: forest\\ntrained: 2025-03-01\\nversion: 2.10\\n")
    ...     read_about(file).version
    '2.10'
    """
    values = read_pairs(Path(path))
    fields: dict[str, Any] = about_schema()["properties"]
    for key in values:
        if key not in fields:
            raise ValueError(
                f"{path}: unknown key {key!r}; allowed are "
                f"{', '.join(fields)}{did_you_mean(key, fields)}"
            )
    _validate(path, values)
    return About(**values)


def read_pairs(path: Path) -> dict[str, Any]:
    """Keys and values of a YAML file, each value as text; none of an empty file.

    Values are checked no further: one may be a list or a mapping.

    Raises:
        ValueError: In one line: a file that cannot be read, no YAML, no lines of keys and values, a
            key given twice, a reference, or a text that is too long or too deeply nested.
    """
    import yaml

    try:
        text = read_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ValueError(f"{path}: cannot be read: {reason}") from None
    try:
        _check_plain(path, text)
        root = yaml.compose(text, Loader=yaml.BaseLoader)
        # Texts alone, so that nothing is converted.
        values = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise ValueError(
            f"{path}: not YAML{where}; write one 'key: value' on each line, with quotes around a "
            "value that holds ': ' or ' #'"
        ) from None
    if root is None or values == "":
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected lines of the form 'key: value', got {_shape(values)}")
    keys = [str(key.value) for key, _ in root.value]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"{path}: {key}: given {keys.count(key)} times; keep one")
    return {str(key): value for key, value in values.items()}


def _check_plain(path: Path, text: str) -> None:
    """Refuse (ValueError) a text that swells or nests: reading it could take hours, or all memory.

    Its events are read one by one and not beyond the first that is too much.
    """
    import yaml

    if len(text) > _LONGEST:
        raise ValueError(f"{path}: expected at most {_LONGEST:,} characters, got {len(text):,}")
    depth = 0
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(
                f"{path}: holds a reference (*{event.anchor}); write out what it means"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError(f"{path}: expected 'key: value' on each line, got lists within lists")


def _validate(path: "str | PathLike[str]", values: dict[str, Any]) -> None:
    """Refuse (ValueError) the first value that the schema does not allow."""
    from jsonschema import Draft202012Validator, FormatChecker

    dates = FormatChecker(formats=())
    dates.checks("date", raises=ValueError)(_is_date)
    checker = Draft202012Validator(about_schema(), format_checker=dates)
    errors = sorted(checker.iter_errors(values), key=lambda error: list(map(str, error.path)))
    if errors:
        first = errors[0]
        key = str(first.path[0])
        value = values[key]
        expected = f"a date as YYYY-MM-DD, such as 2025-03-01, got {value!r}"
        if first.validator == "type":
            expected = f"text, got {_shape(value)}"
        elif first.validator == "maxLength":
            expected = f"at most {first.validator_value} characters, got {len(value)}"
        raise ValueError(f"{path}: {key}: expected {expected}")


def _is_date(value: object) -> bool:
    """Whether a value may stand for a date: one by ISO 8601, or empty; a ValueError for other text.

    Another type passes, since the schema's type refuses it already.
    """
    return not isinstance(value, str) or not value or bool(date.fromisoformat(value))


def _shape(value: object) -> str:
    """What a value is, in words; text as it stands, in quotes."""
    return {list: "a list", dict: "keys of its own"}.get(type(value), f"{value!r}")
