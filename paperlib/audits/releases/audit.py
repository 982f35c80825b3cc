"""The audit of a release: which rows it was made of, where its generator is not known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.document import AuditDocument, answer_of
from paperlib.audits.features import AdditiveModel, FeaturesResult, audit_features
from paperlib.audits.releases.distances import Flags, Nearness, Space, nearness
from paperlib.audits.releases.rates import disclosure_rates
from paperlib.audits.releases.records import alike_rows_warnings, check_record_columns
from paperlib.audits.releases.rows import (
    FEWEST,
    Rows,
    alike,
    check_copies,
    check_one_draw,
    space_of,
    taken,
)
from paperlib.core import Coins, FloatArray, IntArray, MembershipScores, ScoreAudit, check_ids
from paperlib.core.checks import check_confidence, one_of_each, unit_means
from paperlib.core.direction import reversed_direction
from paperlib.core.options import Design
from paperlib.core.sealed import check_loaded
from paperlib.report.audit.tables import TableSection, with_interval
from paperlib.words.audits import releases as words

SHOWN = 20  # exposed records
_POOL_ORDER, _RATES = 6, 7  # streams of a seed: no two draws of an audit are from one
_CLEAR = 2.0  # log of how many times nearer a row is to the release than to the pool: seven


class NearFirst(AdditiveModel):
    """An additive model that from the start takes rows much nearer to the release for members."""

    # A few copies among thousands of rows are seldom among the first coins that a model learns
    # from.
    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Chances of a non-member and of a member, shape (n, 2), for rows of features of shape (n,
        features).
        """
        chance = np.clip(super().predict_proba(X), 1e-12, 1.0)
        # The first feature is the log of how much nearer the row is to the release: what it is
        # above `_CLEAR` is added to the log odds.
        odds = chance[:, 1] / chance[:, 0] * np.exp(np.maximum(X[:, 0] - _CLEAR, 0))
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseAudit:
    """What a release tells of the rows it was made of."""

    result: FeaturesResult  #: lower bound on epsilon
    scores: MembershipScores  #: log of how much nearer each row is to the release than to the pool
    rates: pd.DataFrame  #: rate, hits, totals, rates and intervals of members and control, excess
    exposed: pd.DataFrame  #: members nearest to the release: record, score, release_row, equal
    #: one row per record, members first: member, and what membership was learned from
    signals: pd.DataFrame
    design: Design
    warnings: tuple[str, ...] = ()
    ids: Sequence[Any] | None = None  #: names of the records, members first
    reading: tuple[str, ...] = ()  #: how values were read; among the notes of the result too

    def __str__(self) -> str:
        # The result says the reasons of its refusals itself.
        further = [text for text in self.warnings if text not in self.result.warnings]
        warnings = [f"Warning: {text}" for text in further]
        return "\n\n".join([str(self.result), *warnings, self.rates_text()])

    def rates_text(self) -> str:
        """The rates as lines of text, with what each counts."""
        section = self._rates_section()
        rows = pd.DataFrame(section.rows, columns=list(section.headings)).to_string(index=False)
        meanings = [words.meaning_of(row[0]) for row in section.rows]
        return "\n".join([section.text, rows, *meanings])

    def document(self, **fields: Any) -> AuditDocument:
        """The audit for readers and programs; ``fields`` are further ones of `AuditDocument`, as
        ``facts``.
        """
        main = ScoreAudit(
            title=words.TITLE,
            kind="lower bound",
            purpose=words.PURPOSE,
            result=self.result,
        )
        answer = answer_of(self.result, about="", warnings=self.warnings)
        return AuditDocument(
            scores=self.scores,
            audits=(main,),
            answers=(answer,),
            design=self.design,
            what="release",
            limits=((self.result.epsilon, self.result.ceiling),),
            warnings=answer.warnings,
            ids=self.ids,
            sections=(self._rates_section(),),
            more={
                "ceiling": self.result.ceiling,
                "rates": self.rates.to_dict("records"),
                "exposed": self.exposed.to_dict("records"),
            },
            **fields,
        )

    def _rates_section(self) -> TableSection:
        """The rates as a table of the page."""
        rows = [_cells(row) for row in self.rates.to_dict("records")]
        return TableSection(
            title=words.RATES_TITLE,
            text=words.RATES_TEXT,
            headings=words.rates_headings(self.result.confidence),
            rows=rows,
            one_line=(3,),
            wide=True,
            note=words.rates_note([row[0] for row in rows]),
        )


def _cells(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The cells of one row of `disclosure_rates`: the rate's name, then members, control, and the
    excess of members as text.
    """
    cells = [str(row["rate"])]
    for name in ("member", "control"):
        rate = with_interval(row[f"{name}_rate"], row[f"{name}_low"], row[f"{name}_high"], 4)
        cells.append(words.share_of(row[f"{name}_hits"], row[f"{name}_total"], rate))
    cells.append(with_interval(row["excess"], row["excess_low"], row["excess_high"], 4))
    return tuple(cells)


def audit_release(
    release: Rows,
    members: Rows,
    nonmembers: Rows | None = None,
    *,
    ids: Sequence[Any] | None = None,
    unit: Sequence[Any] | None = None,
    coins: Coins | None = None,
    group_columns: Sequence[str] = (),
    secret: str | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    design: Design = "randomized",
    seed: int = 0,
) -> ReleaseAudit:
    """Lower-bound epsilon of what made a release, from the release alone, and count what it gives
    away.

    Each row's distances to the release, and how isolated it is among members and non-members
    together, become the signals of `audit_features`. Beside the bound stand rates of members
    against non-members.

    Guarantee:
        That of `audit_features` for the whole procedure from members to release, whatever it is, if
        coins chose the members as ``design`` says and the release depends on no other row of either
        side.

    Args:
        release, members, nonmembers: Tables with the same columns, lists of texts, or images of one
            size, shape (n, height, width) or with channels behind; 20 rows or more each. With
            ``coins`` the members are all records with a coin, and there are no non-members.
        ids: One name per row, members first, for the list of exposed records; needed with
            ``coins``, and the names of units where these have the coins.
        unit: In place of ids the name of each row's unit, such as a patient, members first: its
            rows are one example, whose signals are averaged. Rates are of one row of each.
        coins: The coins that were tossed before the generator was trained.
        group_columns: Columns such as a small site, of whose rows each is a record of its own: a
            table is refused where a column looks as if its values were units.
        secret: Column to be inferred; by default one is drawn for each row.
        delta, confidence, design, seed: As for `audit_features`; the confidence is that of
            intervals too.

    Raises:
        ValueError: Rows of different kinds or columns, too few, a release that is one of the other
            files, copies of rows, sides that differ whatever was released, and what
            `audit_features` refuses.

    Source:
        True and phantom disclosures: Amin et al. (2026), arXiv:2606.16952. Singling out,
        linkability and inference: Article 29 Working Party, Opinion 05/2014, measured in the manner
        of Giomi et al. (2023), arXiv:2211.10459. Distances as signals of `audit_features`: this
        project.

    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.normal(size=(900, 4)), columns=list("abcd"))
    >>> members, others, fresh = rows[:300], rows[300:600], rows[600:]
    >>> audit_release(fresh, members, others, design="game").result.epsilon
    0.0
    >>> leaky = members + rng.normal(scale=0.01, size=(300, 4))
    >>> audit_release(leaky, members, others, design="game").result.epsilon > 3
    True
    """
    check_confidence(confidence)
    check_loaded(coins)
    _check_sides(nonmembers, ids, unit, coins, design)
    sides = [members] if nonmembers is None else [members, nonmembers]
    compared = alike(release, sides, kept=secret)
    released, pool = compared.release, compared.pool
    examples = _examples(len(members), len(pool), ids, unit, coins)
    if isinstance(members, pd.DataFrame) and isinstance(nonmembers, pd.DataFrame):
        check_record_columns(members, nonmembers, names=examples.names, groups=group_columns)
    _check_secret(secret, pool)
    measured = _measured(released, pool, examples, seed)
    rates = _rates(released, pool, measured, secret, confidence, seed)
    signals = measured.signals()
    result = audit_features(
        _features(signals, examples, coins),
        examples.member if coins is None else coins,
        delta=delta,
        confidence=confidence,
        design=design,
        seed=seed,
        model=NearFirst(),
        unit=examples.names if coins is None and examples.are_units else None,
    )
    records = measured.records(signals.iloc[:, 0].to_numpy())
    member = records.pop("member").to_numpy()
    values = records["score"].to_numpy()
    scores = MembershipScores(values[member], values[~member])
    warnings = (*compared.warnings, *measured.warnings)
    if isinstance(pool, pd.DataFrame) and not examples.are_units:
        # In random order: the place of a row tells nothing.
        rows = taken(pool, measured.order)
        warnings = (*warnings, *alike_rows_warnings(rows, measured.member))
    if reversed_direction(scores):
        scores = MembershipScores(scores.member, scores.nonmember, higher_means_member=False)
        warnings = (*warnings, words.AWAY)
    notes = compared.notes
    if examples.are_units:
        notes = (*notes, words.ONE_ROW)
    # A leak that is shown is one, whatever else cannot be compared.
    uncertain = compared.uncertain if result.epsilon == 0 else ()
    return ReleaseAudit(
        result=replace(
            result,
            claim=f"{result.claim} {words.THE_PROCEDURE}",
            notes=(*result.notes, *notes),
            refusals=(*result.refusals, *compared.refusals, *uncertain),
        ),
        scores=scores,
        rates=rates,
        exposed=_exposed(records[member], scores.higher_means_member),
        design=design,
        warnings=warnings,
        signals=examples.of_records(signals.assign(member=examples.member)),
        ids=None if examples.names is None else _members_first(records["record"], member),
        reading=notes,
    )


@dataclass(frozen=True, eq=False)
class _Examples:
    """What the rows of the pool are: each a record, or rows of units."""

    names: list[str] | None  #: of the record or unit of each row; None where none was given
    member: Flags  #: whether each row is a member, shape (n,)
    are_units: bool  #: several rows may have one name, that of their unit

    def of_records(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Signals with membership in front, one row for each record: those of a row, or the mean of
        the rows of a unit. ``rows`` have the column "member" beside the signals.
        """
        signals = list(rows.columns.drop("member"))
        rows = rows[["member", *signals]]
        if not self.are_units or self.names is None:
            return rows
        means, _ = unit_means(rows.to_numpy(dtype=float), self.names)
        frame = pd.DataFrame(means, columns=rows.columns)
        return frame.assign(member=frame["member"] == 1)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Distances of the rows of the pool, which are shuffled, so that the position of a row, and
    with it rounding, tells nothing of its membership.
    """

    examples: _Examples  #: in the order of the pool
    order: IntArray  #: number of the pool's row at each shuffled position, shape (n,)
    space: Space  #: shuffled
    near: Nearness  #: shuffled
    once: IntArray  #: shuffled positions of one row of each record
    warnings: tuple[str, ...]  #: of equal rows

    @property
    def member(self) -> Flags:
        """Whether the row at each shuffled position is a member, shape (n,)."""
        return self.examples.member[self.order]

    def signals(self) -> pd.DataFrame:
        """What membership is learned from, a column each, of each row in the order of the pool."""
        back = np.argsort(self.order)
        return pd.DataFrame({name: row[back] for name, row in self.near.signals().items()})

    def records(self, scores: FloatArray) -> pd.DataFrame:
        """One row for each record, in the order of the pool: record, score, release_row, reproduced
        and member.

        Records are names, or numbers from 1 without names; release_row is the number, from 1, of
        the nearest row of the release; reproduced, whether the release holds it. Of a unit, score
        is the mean of its rows, release_row that of its row with the highest score, and reproduced
        holds if it does for any row. ``scores`` are of each row of the pool, shape (n,).
        """
        back = np.argsort(self.order)  # from the shuffled order to that of the pool
        names = self.examples.names
        rows = pd.DataFrame(
            {
                "record": np.arange(1, len(back) + 1).tolist() if names is None else names,
                "score": scores,
                "release_row": self.near.nearest[back] + 1,
                "reproduced": self.space.equal[back],
                "member": self.examples.member,
            }
        )
        if not self.examples.are_units:
            return rows
        by_unit = rows.groupby("record", sort=False)
        records = rows.loc[by_unit["score"].idxmax()].reset_index(drop=True)
        records["score"] = by_unit["score"].mean().to_numpy()
        records["reproduced"] = by_unit["reproduced"].any().to_numpy()
        return records


def _check_sides(
    nonmembers: Rows | None,
    ids: Sequence[Any] | None,
    unit: Sequence[Any] | None,
    coins: Coins | None,
    design: Design,
) -> None:
    """Refuse (ValueError) both ids and units, neither non-members nor coins, and coins with a
    second set of rows, without ids, with units, or with another design than theirs.
    """
    if ids is not None and unit is not None:
        raise ValueError("ids: the names of units name the records; give one of ids and unit")
    if coins is None:
        if nonmembers is None:
            raise ValueError(
                "nonmembers: rows like the members are needed that the release was not made of"
            )
        return
    coins.check_alone(design, unit)
    if nonmembers is not None or ids is None:
        raise ValueError(
            "coins: give all rows with a coin as members, with ids, and no non-members"
        )


def _examples(
    members: int,
    total: int,
    ids: Sequence[Any] | None,
    unit: Sequence[Any] | None,
    coins: Coins | None,
) -> _Examples:
    """The names and the membership of ``total`` rows: without coins the first ``members`` of them
    are members, with coins those that they included.

    Raises:
        ValueError: Names that do not fit the rows or the coins, or fewer than 20 units.
    """
    are_units = unit is not None or (coins is not None and bool(coins.unit))
    names = _checked_names(ids if unit is None else unit, members, total, are_units)
    member = np.arange(total) < members
    if coins is not None:
        member = coins.included[coins.places(names or ())]
    if are_units and len(set(names or ())) < FEWEST:
        raise ValueError(f"unit: expected {FEWEST} units or more, got {len(set(names or ()))}")
    return _Examples(names, member, are_units)


def _checked_names(
    ids: Sequence[Any] | None, members: int, total: int, are_units: bool
) -> list[str] | None:
    """The names of ``total`` rows as text, the first ``members`` those of members; None where none
    were given. A ValueError where a name is missing, two rows have one, or, with ``are_units``, a
    unit has rows on both sides.
    """
    if ids is None:
        return None
    if len(ids) != total:
        raise ValueError(f"ids: expected one for each of {total} rows, got {len(ids)}")
    names = [str(name) for name in ids]
    check_ids(names[:members], names[members:], unit=are_units)
    return names


def _measured(released: Any, pool: Any, examples: _Examples, seed: int) -> _Measured:
    """The distances of a shuffled pool, whose rows ``examples`` describes in the pool's order.

    Raises:
        ValueError: Copies of rows, or sides that differ whatever was released.
    """
    order = np.random.default_rng([seed, _POOL_ORDER]).permutation(len(pool))
    space = space_of(released, taken(pool, order))
    member = examples.member[order]
    units = None
    once = np.arange(len(order))
    if examples.are_units and examples.names is not None:
        units = [examples.names[row] for row in order.tolist()]
        once = np.sort(one_of_each(units, len(order), seed))
    warnings = check_copies(space, member, units)
    near = nearness(space, units)
    check_one_draw(space.pool[once], member[once], seed, near.in_pool[once, 0])
    return _Measured(examples, order, space, near, once, warnings)


def _rates(
    released: Any,
    pool: Any,
    measured: _Measured,
    secret: str | None,
    confidence: float,
    seed: int,
) -> pd.DataFrame:
    """The rates of disclosure, as `disclosure_rates` describes them, of one row of each record.

    Args:
        released, pool: Rows of the release, and of both sides in their order.
        measured: Distances of the shuffled pool.
        secret: Column that is inferred; None draws one for each row.
    """
    once = measured.once  # shuffled positions, by which ``order`` gives rows of the pool
    tables = None
    if isinstance(released, pd.DataFrame):
        tables = (released, taken(pool, measured.order[once]))
    return disclosure_rates(
        measured.space.with_rows(once),
        measured.near.taken(once),
        measured.member[once],
        tables,
        secret=secret,
        confidence=confidence,
        rng=np.random.default_rng([seed, _RATES]),
    )


def _features(signals: pd.DataFrame, examples: _Examples, coins: Coins | None) -> Any:
    """The signals as `audit_features` takes them: rows, shape (n, signals); with coins a mapping
    from ids to these; with coins of units a table with their names in the coins' column.
    """
    if coins is None:
        return signals.to_numpy()
    names = examples.names or []
    if coins.unit:
        return signals.assign(**{coins.column: names})
    return dict(zip(names, signals.to_numpy(), strict=True))


def _check_secret(secret: str | None, pool: Any) -> None:
    """Refuse (ValueError) a secret that is no column of the rows."""
    columns = list(getattr(pool, "columns", ()))
    if secret is not None and secret not in columns:
        raise ValueError(f"secret: expected one of the columns {columns}, got {secret!r}")


def _exposed(members: pd.DataFrame, higher_means_member: bool) -> pd.DataFrame:
    """The 20 members that the scores expose most, most exposed first; a row for each, of the
    columns that `_Measured.records` gives.
    """
    ranked = members.sort_values("score", ascending=not higher_means_member, kind="stable")
    return ranked.head(SHOWN).reset_index(drop=True)


def _members_first(names: "pd.Series[Any]", member: Flags) -> list[str]:
    """The names of the records, shape (n,), members first, each side in its order."""
    return names.iloc[np.argsort(~member, kind="stable")].tolist()
