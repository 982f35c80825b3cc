"""The audit of a release: which rows it was made of, where its generator is not known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.document import AuditDocument, answer_of
from paperlib.audits.features import AdditiveModel, FeaturesResult, audit_features
from paperlib.audits.releases.distances import Flags, nearness
from paperlib.audits.releases.rates import MEANING, disclosure_rates
from paperlib.audits.releases.rows import Rows, alike, check_copies, check_one_draw, space_of, taken
from paperlib.core import (
    Coins,
    Design,
    FloatArray,
    MembershipScores,
    ScoreAudit,
    check_confidence,
    check_ids,
    reversed_direction,
)
from paperlib.core.sealed import check_loaded
from paperlib.report.audit.tables import TableSection, with_interval

SHOWN = 20  # exposed records
_CLEAR = 2.0  # log of how many times nearer a row is to the release than to the pool: seven
_PROCEDURE = "The training procedure is all that made the release, with its choices and filters."
_AWAY = (
    "members lie farther from the release than non-members, as after a filter that drops rows near "
    "the training data: that tells of membership too. AUC, rates at few false positives and the "
    "list of exposed records take this direction, which was chosen after looking; the bound pays "
    "for its choice"
)


class NearFirst(AdditiveModel):
    """An additive model that from the start takes rows much nearer to the release for members."""

    # A few copies among thousands of rows are seldom among the first coins that a model learns
    # from.
    def predict_proba(self, X: FloatArray) -> FloatArray:
        chance = np.clip(super().predict_proba(X), 1e-12, 1.0)
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
        warnings = [f"Warning: {text}" for text in self.warnings]
        return "\n\n".join([str(self.result), *warnings, self.rates_text()])

    def rates_text(self) -> str:
        """The rates as lines of text, with what each counts."""
        section = self._rates_section()
        rows = pd.DataFrame(section.rows, columns=list(section.headings)).to_string(index=False)
        meanings = [f"{row[0]}: {MEANING[row[0]]}" for row in section.rows]
        return "\n".join([section.text, rows, *meanings])

    def document(self, **fields: Any) -> AuditDocument:
        """The audit for readers and programs; ``fields`` are further ones of `AuditDocument`, as
        ``facts``.
        """
        main = ScoreAudit(
            title="Distances to the release",
            kind="lower bound",
            purpose="How well distances to the release, beside how isolated a row is, tell who is "
            "a member.",
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
        meanings = "; ".join(f"{row[0]}: {MEANING[row[0]]}" for row in rows)
        sure = f"{100 * self.result.confidence:g} %"
        return TableSection(
            title="True and phantom disclosures",
            text="Non-members are the control: what the release seems to tell of them is a "
            "phantom, as it never saw them. What it tells of members beyond that is true "
            "disclosure.",
            headings=(
                "Rate",
                f"Members [{sure}]",
                f"Non-members: phantoms [{sure}]",
                f"Excess [{sure}]",
            ),
            rows=rows,
            one_line=(3,),
            wide=True,
            note=f"{meanings}. These are measurements of these attacks, each interval for itself; "
            "no bounds on epsilon.",
        )


def _cells(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The cells of one rate: its name, members, control, and the excess of members."""
    cells = [str(row["rate"])]
    for name in ("member", "control"):
        rate = with_interval(row[f"{name}_rate"], row[f"{name}_low"], row[f"{name}_high"], 4)
        cells.append(f"{row[f'{name}_hits']:,} of {row[f'{name}_total']:,}: {rate}")
    cells.append(with_interval(row["excess"], row["excess_low"], row["excess_high"], 4))
    return tuple(cells)


def audit_release(
    release: Rows,
    members: Rows,
    nonmembers: Rows | None = None,
    *,
    ids: Sequence[Any] | None = None,
    coins: Coins | None = None,
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
            ``coins``.
        coins: The coins that were tossed before the generator was trained.
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
    _check_sides(nonmembers, ids, coins)
    sides = [members] if nonmembers is None else [members, nonmembers]
    released, pool, warnings, notes = alike(release, sides, kept=secret)
    names = _checked_names(ids, len(members), len(pool))
    member = np.arange(len(pool)) < len(members)
    if coins is not None:
        member = coins.included[coins.places(names or ())]
    _check_secret(secret, pool)
    # Shuffled, so that the place of a row, and with it rounding, tells nothing of its membership.
    order = np.random.default_rng([seed, 6]).permutation(len(pool))
    shuffled = taken(pool, order)
    space = space_of(released, shuffled)
    warnings += check_copies(space, member[order])
    near = nearness(space)
    check_one_draw(space.pool, member[order], seed, near.in_pool[:, 0])
    tables = (released, shuffled) if isinstance(released, pd.DataFrame) else None
    rng = np.random.default_rng([seed, 7])
    rates = disclosure_rates(
        space, near, member[order], tables, secret=secret, confidence=confidence, rng=rng
    )
    back = np.argsort(order)
    signals = {name: values[back] for name, values in near.signals().items()}
    features = np.column_stack(list(signals.values()))
    result = audit_features(
        features if coins is None else dict(zip(names or (), features, strict=True)),
        member if coins is None else coins,
        delta=delta,
        confidence=confidence,
        design=design,
        seed=seed,
        model=NearFirst(),
    )
    scores = MembershipScores(features[member, 0], features[~member, 0])
    if reversed_direction(scores):
        scores = MembershipScores(scores.member, scores.nonmember, higher_means_member=False)
        warnings = (*warnings, _AWAY)
    records = pd.DataFrame(
        {
            "record": np.arange(1, len(pool) + 1).tolist() if names is None else names,
            "score": features[:, 0],
            "release_row": near.nearest[back] + 1,
            "reproduced": space.equal[back],
        }
    )
    return ReleaseAudit(
        result=replace(result, claim=f"{result.claim} {_PROCEDURE}", notes=(*result.notes, *notes)),
        scores=scores,
        rates=rates,
        exposed=_exposed(records[member], scores.higher_means_member),
        design=design,
        warnings=warnings,
        signals=pd.DataFrame({"member": member, **signals}),
        ids=_members_first(names, member),
        reading=notes,
    )


def _check_sides(nonmembers: Rows | None, ids: Sequence[Any] | None, coins: Coins | None) -> None:
    """Refuse (ValueError) sides that neither a second set of rows nor coins tell, or both."""
    if coins is None and nonmembers is None:
        raise ValueError(
            "nonmembers: rows like the members are needed that the release was not made of"
        )
    if coins is not None and (nonmembers is not None or ids is None or coins.unit):
        raise ValueError(
            "coins: give all records with a coin as members, with ids, and coins of single rows"
        )


def _checked_names(ids: Sequence[Any] | None, members: int, total: int) -> list[str] | None:
    """The names of the rows as text, the first ``members`` those of members; a ValueError where
    they do not name each row once.
    """
    if ids is None:
        return None
    if len(ids) != total:
        raise ValueError(f"ids: expected one for each of {total} rows, got {len(ids)}")
    names = [str(name) for name in ids]
    check_ids(names[:members], names[members:])
    return names


def _check_secret(secret: str | None, pool: Any) -> None:
    """Refuse (ValueError) a secret that is no column of the rows."""
    columns = list(getattr(pool, "columns", ()))
    if secret is not None and secret not in columns:
        raise ValueError(f"secret: expected one of the columns {columns}, got {secret!r}")


def _exposed(members: pd.DataFrame, higher_means_member: bool) -> pd.DataFrame:
    """The members that the scores expose most, most exposed first."""
    ranked = members.sort_values("score", ascending=not higher_means_member, kind="stable")
    return ranked.head(SHOWN).reset_index(drop=True)


def _members_first(names: list[str] | None, member: Flags) -> list[str] | None:
    """The names of the records, members first, each side in its order."""
    if names is None:
        return None
    return [names[row] for row in np.argsort(~member, kind="stable").tolist()]
