"""What the commands take: types of options that several share, and the table of what help says of
each.
"""

import os
import sys
import tomllib
from collections.abc import Callable
from copy import copy
from functools import wraps
from importlib.metadata import entry_points
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

Kind = Literal["scores", "losses"]
Guess = Literal["adaptive", "both", "members", "nonmembers", "grid"]
Design = Literal["randomized", "game", "played"]
On = Literal["all", "completions"]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "int8"]

READ_LIMIT = "read_limit"
"""The parameter of commands that read files of a user."""

Command = Callable[..., int | None]
"""A command's function; it may return the exit code."""
_Described = tuple[Callable[..., Any], str | dict[str, Any]]
"""`typer.Argument` or `typer.Option`, and the help of a parameter or its settings with the help."""


def kind_of(kind: Kind | None, losses: bool) -> Kind | None:
    """One answer of the options --kind and --losses; a ValueError where they contradict each
    other.
    """
    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    return "losses" if losses else kind


def add_commands(app: typer.Typer, *called: Command) -> None:
    """Give ``app`` commands that are called as their functions, with what ``help.toml`` says of
    each.
    """
    help_table = _help_in(Path(__file__).parent)
    for command in called:
        _add_command(app, command.__name__.replace("_", "-"), command, help_table)


def add_brought_commands(app: typer.Typer) -> None:
    """Give ``app`` the commands that entry points named ``paperlib.commands`` bring.

    In a checkout these are the commands of its notebooks. Their help is in a ``help.toml`` beside
    their module. The installed package names them and does not hold them: they end with one line.
    """
    for entry in entry_points(group="paperlib.commands"):
        try:
            command = entry.load()
        except ModuleNotFoundError as error:
            if entry.module.startswith(f"{error.name}."):
                app.command(entry.name, context_settings=_ANYTHING)(_only_in_a_checkout)
                continue
            raise
        folder = Path(sys.modules[entry.module].__file__ or "").parent
        _add_command(app, entry.name, command, _help_in(folder))


_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}
"""What a command takes that only says why it cannot run."""


def _only_in_a_checkout() -> None:
    """Works in a checkout of the project, which has the notebooks."""
    raise ValueError(
        "this command works in a checkout of the project, with its notebooks: clone it and type "
        "make setup; what is installed here audits"
    )


def _help_in(folder: Path) -> dict[str, Any]:
    """The table of help in a folder."""
    return tomllib.loads((folder / "help.toml").read_text(encoding="utf-8"))


def _add_command(app: typer.Typer, name: str, command: Command, help_table: dict[str, Any]) -> None:
    """Give ``app`` one command with what a table of help says of it."""
    described = _parameters_in_help(help_table, name)
    if READ_LIMIT in described:
        command = _with_read_limit(command)
    _describe(command, described)
    app.command(name, epilog="   |   ".join(help_table[name]["epilog"]))(command)


def _with_read_limit(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command with an option more, which holds while it runs; its environment variable reaches
    the processes that it starts.
    """

    @wraps(command)
    def limited(*positional: Any, **named: Any) -> int | None:
        from paperlib.core.reading.limits import READ_LIMIT_VARIABLE, parse_size, read_limit

        limit = named.pop(READ_LIMIT)
        if limit is None:
            read_limit()  # a variable that holds no size is refused at once
            return command(*positional, **named)
        parse_size(limit, "--read-limit")
        before = os.environ.get(READ_LIMIT_VARIABLE)
        os.environ[READ_LIMIT_VARIABLE] = limit
        try:
            return command(*positional, **named)
        finally:
            del os.environ[READ_LIMIT_VARIABLE]
            if before is not None:
                os.environ[READ_LIMIT_VARIABLE] = before

    plain = signature(command)
    option = Parameter(READ_LIMIT, Parameter.KEYWORD_ONLY, default=None, annotation=str | None)
    vars(limited)["__signature__"] = plain.replace(parameters=[*plain.parameters.values(), option])
    return limited


def _parameters_in_help(help_table: dict[str, Any], command: str) -> dict[str, _Described]:
    """What the table of help says of a command's parameters, by name.

    Groups come from those of all commands, over those of several, to that of one: the last counts.
    """
    described: dict[str, _Described] = {}
    for title, group in help_table.items():
        if title != "shared" and command not in title.split():
            continue
        for name, words in group.get("arguments", {}).items():
            described[name] = typer.Argument, words
        for name, words in group.get("options", {}).items():
            described[name] = typer.Option, words
    return described


def _describe(command: Callable[..., Any], described: dict[str, _Described]) -> None:
    """Give a command the signature that Typer reads its arguments, options and help from."""
    plain = signature(command)
    parameters = [
        parameter
        if parameter.annotation is typer.Context
        else _typer_parameter(parameter, *described[parameter.name])
        for parameter in plain.parameters.values()
    ]
    vars(command)["__signature__"] = plain.replace(parameters=parameters)


def _typer_parameter(
    parameter: Parameter, make: Callable[..., Any], described: str | dict[str, Any]
) -> Parameter:
    """The parameter as Typer takes it, with what the table of help says of it.

    A switch that is off by default gets ``--name`` alone; Typer gives one that is on ``--no-name``
    too.
    """
    words = {"help": described} if isinstance(described, str) else dict(described)
    usual = [f"--{parameter.name.replace('_', '-')}"] if parameter.default is False else []
    flags = words.pop("flags", usual)
    base = parameter.annotation
    defaults: list[Any] = []
    if get_origin(base) is Annotated:
        base, *defaults = get_args(base)
    info = copy(defaults[0]) if defaults else make(*flags)
    vars(info).update(words)
    return parameter.replace(annotation=Annotated[base, info])
