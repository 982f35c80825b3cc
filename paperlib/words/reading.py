"""What is said of how scores were read from files."""

from collections.abc import Iterable

from paperlib.core.facts import AgainstName, TwoMeasures


def name_warnings(conflicts: Iterable[AgainstName | TwoMeasures]) -> tuple[str, ...]:
    """A warning of each conflict between names of columns and what was read from them."""
    warnings: list[str] = []
    for conflict in conflicts:
        if isinstance(conflict, AgainstName):
            warnings.append(_against_name(conflict))
        else:
            warnings.append(_two_measures(conflict))
    return tuple(warnings)


def _against_name(conflict: AgainstName) -> str:
    """The warning that a column is read against what its name says."""
    return (
        f"{conflict.column} was read as {conflict.read_as}, as --kind says, "
        f"although its name points to {conflict.by_name}"
    )


def _two_measures(conflict: TwoMeasures) -> str:
    """The warning that the columns of members and non-members are named as different measures."""
    return (
        f"{conflict.first_file} holds {conflict.first!r} and {conflict.second_file} holds "
        f"{conflict.second!r}; check that both are the same measure"
    )
