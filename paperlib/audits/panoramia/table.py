"""Your table: rows that a target was trained on, a generator for them, and helpers for the
label.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from paperlib.audits.panoramia.audit import AuditData, AuditOptions, PanoramiaAudit, audit_model
from paperlib.audits.panoramia.memorization import copied_members, copies
from paperlib.audits.panoramia.pools import SYNTHETIC, Helper, Model, Trainer
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, table_losses, train
from paperlib.audits.releases.records import alike_rows_warnings, check_record_columns
from paperlib.audits.releases.rows import check_kinds
from paperlib.core import FloatArray, check_ids
from paperlib.core.checks import check_in, did_you_mean, find_ties, one_of_each
from paperlib.generators.table_filter import FilteredGenerator, RowCoder
from paperlib.generators.tabular import TableGenerator, checked_columns, is_name_like
from paperlib.words.audits import panoramia_data as words
from paperlib.words.designs import tie_warnings

_MOST_CLASSES = 100
_PAIR_ORDER = 8  # stream of a seed: no two draws of an audit are from one


def audit_table(
    target: Callable[[pd.DataFrame], ArrayLike],
    members: pd.DataFrame,
    *,
    label: str | None = None,
    generated: pd.DataFrame | None = None,
    nonmembers: pd.DataFrame | None = None,
    generator: TableGenerator | None = None,
    train_again: Callable[[pd.DataFrame, int], Model] | None = None,
    epochs: int = 50,
    seed: int = 0,
    unit: str | None = None,
    group_columns: Sequence[str] = (),
    **options: Unpack[AuditOptions],
) -> PanoramiaAudit:
    """Measure with PANORAMIA how much a model leaks about the rows of its training table.

    Non-members are generated, as `bring_table` describes, and helpers learn no row that is judged.

    Guarantee:
        That of `audit_panoramia`, for the first game: attacks learn from other members than those
        judged.

    Args:
        target: Function from a table like ``members`` to losses, shape (n,), lower where it knows
            the row.
        members: Rows the target was trained on, numbers and words, without missing values; 50 or
            more, as a generator learns some, or 30 with ``generated``.
        label: Column that helpers predict, with 2 to 100 different values; None leaves out all
            helpers but those of ``train_again``.
        generated: Rows of a generator that saw none of the members; None fits one on 40 % of the
            members.
        nonmembers: Real rows the target was not trained on, for a comparison.
        generator: Generator to fit where ``generated`` is None; None takes a Chow-Liu tree with
            rejection.
        train_again: Function from a table and a seed to a function like ``target``, which trains
            your model anew on these rows. It is called 12 times, for helpers and for a null target,
            which alone lets the audit check that a model that never saw the members gets 0.
        epochs: Training epochs of the helpers, 1 or more.
        unit: Column that names records of several rows, such as customers: one row of each is
            audited.
        group_columns: Columns such as a small site, of whose rows each is a record of its own:
            beside ``nonmembers`` a column that looks as if its values were units is refused.
        options: As for `audit_model`.

    Raises:
        ValueError: A table, a label or losses that cannot be audited, or a number out of range.

    Source:
        PANORAMIA, Algorithm 1 (arXiv:2402.09477).

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.normal(size=(600, 3)), columns=["age", "dose", "weight"])
    >>> rows["ill"] = rng.integers(0, 2, 600)
    >>> def trained_on(table, seed):
    ...     def features(rows):
    ...         return rows[["age", "dose", "weight"]]
    ...     model = DecisionTreeClassifier(random_state=seed).fit(features(table), table["ill"])
    ...     def losses(rows):
    ...         return 1 - model.predict_proba(features(rows))[np.arange(len(rows)), rows["ill"]]
    ...     return losses
    >>> losses, quick = trained_on(rows, 0), {"epochs": 5, "repetitions": 2, "restarts": 1}
    >>> audit = audit_table(losses, rows, label="ill", train_again=trained_on, **quick)
    >>> print(audit.headline)
    ε~ = 0... (a measurement; c ≥ 0.000, c + ε ≥ 0...; δ = 0, confidence 0.95); null: 0.00 [...
    """
    data = bring_table(
        members,
        label=label,
        generated=generated,
        nonmembers=nonmembers,
        generator=generator,
        epochs=epochs,
        unit=unit,
        group_columns=group_columns,
        seed=seed,
    )
    return audit_model(target, data, train_again=train_again, seed=seed, **options)


def bring_table(
    members: pd.DataFrame,
    *,
    label: str | None = None,
    generated: pd.DataFrame | None = None,
    nonmembers: pd.DataFrame | None = None,
    generator: TableGenerator | None = None,
    share: float = 0.4,
    epochs: int = 50,
    learning: Learning | None = None,
    unit: str | None = None,
    group_columns: Sequence[str] = (),
    seed: int = 0,
) -> AuditData:
    """Prepare a table of members; arguments as for `audit_table`, and how helpers learn.

    Without generated rows a ``share`` of the members, in (0, 1), becomes D_G, from which generator
    and helpers learn, and the rest is audited. With them all members are audited; their generator
    must not have seen any. Half of the generated rows go to a helper that learns these alone.

    Raises:
        ValueError: A share outside (0, 1), or a table that `audit_table` refuses.
    """
    check_in("(0, 1)", "share", share)
    for name, rows in (("members", members), ("generated", generated), ("nonmembers", nonmembers)):
        if not isinstance(rows, pd.DataFrame | None):
            raise ValueError(f"{name}: expected a DataFrame, got {type(rows).__name__}")
    if unit is not None:
        members, nonmembers = _one_row_of_each(unit, members, nonmembers, seed)
    _check_complete("members", members)
    columns = checked_columns("members", members)
    _check_like("generated", generated, members)
    _check_like("nonmembers", nonmembers, members)
    real = [members] if nonmembers is None else [members, nonmembers]
    ties = find_ties("rows", *map(_hashes, real))
    warnings = [*tie_warnings(ties), *_name_warnings(columns)]
    if nonmembers is not None and unit is None:
        check_record_columns(members, nonmembers, groups=group_columns)
        warnings += _alike_rows(members, nonmembers, seed)
    shuffled = _shuffled(members, seed)
    if generated is None:
        learned = shuffled[: round(share * len(shuffled))]  # D_G
        audited = shuffled[len(learned) :].reset_index(drop=True)
        fitted = (generator or FilteredGenerator(seed=seed)).fit(learned)
        drawn = fitted.sample(2 * len(audited), seed + 1)[list(members.columns)]
    else:
        checked_columns("generated", generated)
        learned = None
        audited = shuffled
        drawn = _shuffled(generated, seed + 1)
    half = len(drawn) // 2
    to_show, to_learn = drawn[:half], drawn[half:]
    # Words of all sides: one that is on one side alone has a place like all others. No names of
    # units.
    left_out = [] if unit is None else [unit]
    coder = RowCoder.fit(pd.concat([*real, drawn]).drop(columns=left_out))

    def view(rows: pd.DataFrame) -> FloatArray:
        """What attacks see of rows: numbers, shape (n, d)."""
        return coder.numbers(rows.drop(columns=left_out))

    if learned is not None:
        warnings += copies(view(to_show), view(learned), view(audited)).warnings
    else:
        warnings += copied_members(_hashes(drawn).tolist(), _hashes(audited).tolist())
    learn = None
    helpers: dict[Helper, Model] = {}
    if label is not None:
        # Scaling is learned from D_G where there is one: it tells nothing of the members.
        scales = to_learn if learned is None else learned
        learn = _helper_trainer(members, label, scales, epochs, learning)
        helpers[SYNTHETIC] = learn(to_learn, seed + 10)
    return AuditData(
        members=(audited,),
        generated=(to_show,),
        nonmembers=None if nonmembers is None else (nonmembers,),
        known=None if learned is None else (learned,),
        helpers=helpers,
        train=learn,
        examples=view,
        warnings=tuple(warnings),
        unit=unit or "",
    )


def _alike_rows(members: pd.DataFrame, nonmembers: pd.DataFrame, seed: int) -> tuple[str, ...]:
    """A warning where rows that are near to each other are on one side, members or non-members,
    more often than chance explains; none elsewhere. The seed puts rows into random order.
    """
    both = pd.concat([members, nonmembers], ignore_index=True)
    order = np.random.default_rng([seed, _PAIR_ORDER]).permutation(len(both))
    return alike_rows_warnings(both.iloc[order].reset_index(drop=True), order < len(members))


def _one_row_of_each(
    unit: str, members: pd.DataFrame, nonmembers: pd.DataFrame | None, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Both tables with one row of each unit, drawn by the seed, and rows numbered from 0; None
    where there are no non-members. A ValueError for a unit on both sides, or no such column.
    """
    for table in (members, nonmembers):
        if table is not None and unit not in table:
            raise ValueError(
                f"unit: expected one of the columns {list(table.columns)}, got {unit!r}"
            )
    member_units = members[unit].tolist()
    nonmember_units = [] if nonmembers is None else nonmembers[unit].tolist()
    check_ids(member_units, nonmember_units, unit=True)
    rows = one_of_each(member_units, len(members), seed)
    members = members.iloc[rows].reset_index(drop=True)
    if nonmembers is not None:
        rows = one_of_each(nonmember_units, len(nonmembers), seed)
        nonmembers = nonmembers.iloc[rows].reset_index(drop=True)
    return members, nonmembers


def _check_like(name: str, table: pd.DataFrame | None, members: pd.DataFrame) -> None:
    """Refuse (ValueError) a table without the columns of the members, in their order, with other
    kinds of cells, or with empty ones; None is no table.
    """
    if table is None:
        return
    if list(table.columns) != list(members.columns):
        raise ValueError(
            f"{name}: expected columns {list(members.columns)}, got {list(table.columns)}"
        )
    _check_complete(name, table)
    check_kinds(name, table, members, "the members")


def _name_warnings(columns: dict[str, NDArray[Any]]) -> list[str]:
    """A warning for each column, shape (n,) by its name, that names rows: nothing learns from
    it.
    """
    warnings: list[str] = []
    for name, values in columns.items():
        if is_name_like(values):
            warnings.append(words.names_rows(name, np.unique(values).size, len(values)))
    return warnings


def _hashes(table: pd.DataFrame) -> NDArray[Any]:
    """A hash of each row, shape (n,), equal for equal rows, be their numbers whole ones or
    floats.
    """
    columns = checked_columns("rows", table)
    rows = {
        name: values if values.dtype.kind == "U" else values.astype(float)
        for name, values in columns.items()
    }
    return pd.util.hash_pandas_object(pd.DataFrame(rows), index=False).to_numpy()


def _check_complete(name: str, table: pd.DataFrame) -> None:
    """Refuse (ValueError) a table with missing cells; the message names it, and each column with
    the number of its missing cells.
    """
    missing = table.isna().sum()
    holes = [f"{column!r} ({count:,})" for column, count in missing[missing > 0].items()]
    if holes:
        raise ValueError(
            f"{name}: missing cells (empty, NA, null or nan) among {len(table):,} rows in the "
            f"columns {', '.join(holes)}; give them a value, such as the word 'unknown' or a "
            "number, in all tables alike, or leave these columns or rows out"
        )


def _shuffled(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The rows in random order, numbered anew."""
    return rows.iloc[np.random.default_rng(seed).permutation(len(rows))].reset_index(drop=True)


def _helper_trainer(
    members: pd.DataFrame, label: str, scales: pd.DataFrame, epochs: int, learning: Learning | None
) -> Trainer:
    """A function that trains a helper on rows with a seed, to predict the label.

    Numbers are scaled as in the rows of ``scales``; ``epochs`` and ``learning`` say how long and
    how.
    """
    if label not in members:
        hint = did_you_mean(label, map(str, members.columns))
        raise ValueError(
            f"label: expected one of the columns {list(members.columns)}, got {label!r}{hint}"
        )
    classes = tuple(sorted(set(members[label].astype(str))))
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"label: expected 2 to {_MOST_CLASSES} different values in {label!r}, got "
            f"{len(classes)}"
        )
    encoder = RowEncoder.fit(scales, label, classes)
    settings = learning or Learning()

    def learn(rows: pd.DataFrame, seed: int) -> Model:
        """A network trained on these rows, as a function from a table to losses, shape (n,)."""
        plain = settings.plain(encoder, epochs, seed)
        config = replace(plain, batch_size=min(settings.batch_size, len(rows)))
        return partial(table_losses, encoder, train(encoder, rows, [config]))

    return learn
