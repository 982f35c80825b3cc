"""What the commands take: types of options that several share, and the table of what help says of
each.
"""

import tomllib
from collections.abc import Callable
from copy import copy
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

Kind = Literal["scores", "losses"]
Guess = Literal["adaptive", "both", "members", "nonmembers", "grid"]
Design = Literal["randomized", "game", "played"]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "int8"]


def names_of(pattern: str) -> list[str]:
    """Names that the shell can complete; none outside a checkout."""
    from paperlib.running.project import find_project

    try:
        folder = find_project().notebooks
    except ValueError:
        return []
    return sorted(path.stem for path in folder.glob(pattern))


Notebook = Annotated[str, typer.Argument(autocompletion=lambda: names_of("*.ipynb"))]
Profile = Annotated[str, typer.Option(autocompletion=lambda: names_of("profiles/*.yaml"))]


def kind_of(kind: Kind | None, losses: bool) -> Kind | None:
    """One answer of the options --kind and --losses; a ValueError where they contradict each
    other.
    """
    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    return "losses" if losses else kind


def add_commands(
    app: typer.Typer, *called: Callable[..., int | None], **named: Callable[..., int | None]
) -> None:
    """Give ``app`` commands, called as their functions or by name, with what ``help.toml`` says of
    each.
    """
    table = tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))
    for name, command in {
        **{one.__name__.replace("_", "-"): one for one in called},
        **named,
    }.items():
        said: dict[str, tuple[Callable[..., Any], Any]] = {}
        for (
            title,
            group,
        ) in table.items():  # from those of several commands to those of one, which counts
            if title == "shared" or name in title.split():
                for kind, make in (("arguments", typer.Argument), ("options", typer.Option)):
                    said |= {one: (make, words) for one, words in group.get(kind, {}).items()}
        own = signature(command)
        described = [
            one if one.annotation is typer.Context else _described(one, *said[one.name])
            for one in own.parameters.values()
        ]
        vars(command)["__signature__"] = own.replace(parameters=described)
        app.command(name, epilog="   |   ".join(table[name]["epilog"]))(command)


def _described(
    parameter: Parameter, make: Callable[..., Any], said: str | dict[str, Any]
) -> Parameter:
    """The parameter as Typer takes it, with what the table says of it; only True has a flag for
    False.
    """
    words = {"help": said} if isinstance(said, str) else dict(said)
    usual = [f"--{parameter.name.replace('_', '-')}"] if parameter.default is False else []
    flags, annotation = words.pop("flags", usual), parameter.annotation
    base, *given = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    info = copy(given[0]) if given else make(*flags)
    vars(info).update(words)
    return parameter.replace(annotation=Annotated[base, info])
