"""How commands come into the application: their names, and examples below their help."""

import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

Command = Callable[..., int | None]
"""A command's function; it may return the exit code."""


class GroupedCommands(TyperGroup):
    """A command whose help shows its commands in groups, each under the title it was added with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each title, in the order in which the titles came first."""
        sections: dict[str, list[tuple[str, str]]] = {}
        room = formatter.width - _INDENT_AND_SPACE - max(map(len, self.commands))
        for name, command in self.commands.items():
            title = getattr(command, "rich_help_panel", None) or "Commands"
            row = name, command.get_short_help_str(room)
            sections.setdefault(title, []).append(row)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


_INDENT_AND_SPACE = 6
"""Columns of a list of commands beside names and summaries, as Typer counts them."""


def add_commands(app: typer.Typer, title: str, *called: Command) -> None:
    """Give ``app`` commands that are called as their functions, with the ``EXAMPLES`` of their
    modules; help shows them under ``title``.
    """
    for command in called:
        _add_command(app, command.__name__.replace("_", "-"), title, command)


def add_brought_commands(app: typer.Typer, title: str) -> None:
    """Give ``app`` the commands that entry points named ``paperlib.commands`` bring; help shows
    them under ``title``.

    In a checkout these are the commands of its notebooks. The installed package names them and does
    not hold them: they end with one line. Raises ModuleNotFoundError for a package that they need.
    """
    for entry in entry_points(group="paperlib.commands"):
        try:
            command = entry.load()
        except ModuleNotFoundError as error:
            # Its room is missing, and not a package that the command needs.
            if entry.module.startswith(f"{error.name}."):
                add = app.command(entry.name, context_settings=_ANYTHING, rich_help_panel=title)
                add(_only_in_a_checkout)
                continue
            raise
        _add_command(app, entry.name, title, command)


_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}
"""What a command takes that only says why it cannot run."""


def _only_in_a_checkout() -> None:
    """Works in a checkout of the project, which has the notebooks."""
    raise ValueError(
        "this command works in a checkout of the project, with its notebooks: clone it and type "
        "make setup; what is installed here audits"
    )


def _add_command(app: typer.Typer, name: str, title: str, command: Command) -> None:
    """Give ``app`` one command, with the examples that its module has for this name."""
    examples: Mapping[str, str] = vars(sys.modules[command.__module__])["EXAMPLES"]
    add = app.command(name, epilog=examples_text(examples[name]), rich_help_panel=title)
    add(command)


def examples_text(examples: str) -> str:
    """Examples as help shows them, each on its line whatever the width, to be copied."""
    lines = ["\b", "Examples:"]  # after this mark, lines are not filled
    for line in examples.strip().splitlines():
        lines.append(f"  {line}")
    return "\n".join(lines)
