"""Texts of known membership under a language model: every score, and a bound where coins allow
it.
"""

import warnings as python_warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.language import score_texts
from paperlib.attacks.language.completions import LearnedText
from paperlib.attacks.language.scores import COMPARING, EXTRACTION
from paperlib.attacks.language.windows import StartedTwiceWarning, started_twice, text_tokens
from paperlib.audits.document import Answer, AuditDocument
from paperlib.audits.features import audit_features
from paperlib.audits.language.blind import (
    blind_table,
    doubts,
    look_alikes,
    quality,
    refusal,
    times_of,
    unknown,
)
from paperlib.audits.language.chat_templates import On, written_sides
from paperlib.audits.scores import Audits, ScoreOptions, audit_scores
from paperlib.core import AuditResult, Coins, FloatArray, MembershipScores, ScoreAudit
from paperlib.core.checks import check_at_least, check_choice, check_ids, check_in, check_list
from paperlib.core.sealed import check_loaded
from paperlib.report.audit.tables import TableSection, with_interval
from paperlib.words.audits import completions
from paperlib.words.audits import texts as words

Texts = Sequence[str] | Sequence[Sequence[int]]
Chats = Sequence[Mapping[str, Any]] | Sequence[LearnedText]

LEARNED = "learned"
"""The attack that learns from all scores where to guess."""


@dataclass(frozen=True, eq=False)
class TextsAudit:
    """How well a model's scores tell members from non-members, and what that bounds."""

    scores: (
        pd.DataFrame
    )  #: one row per text, by name, members first: member, and a column per attack
    quality: (
        pd.DataFrame
    )  #: attack, auc, auc_low, auc_high, tpr at 1 % false positives (from 100 texts on)
    blind: pd.DataFrame  #: without the audited model: as ``quality`` with signal, p_value and apart
    attack: str  #: whose scores are audited, or "learned"
    audits: Audits | None  #: None where the sides differ without the model
    refused: str  #: reason why no bound is given; empty where one is
    suffixes: pd.Series | None = (
        None  #: with ``split``: log-probability of suffixes, NaN in short texts
    )
    started_twice: int = 0  #: texts that bring start tokens which the tokenizer puts there, too

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said of how the texts were read; empty where they were read as they are."""
        if not self.started_twice:
            return ()
        return (words.started_twice(self.started_twice, len(self.scores)),)

    def __str__(self) -> str:
        answer = words.no_bound(self.refused) if self.audits is None else str(self.audits)
        remarks = "".join(f"\n\nWarning: {remark}" for remark in self.remarks)
        return f"{answer}{remarks}\n\n{self.shown}"

    @property
    def shown(self) -> str:
        """The AUC of each score, as a table of text."""
        columns = ["attack", "auc", "auc_low", "auc_high"]
        auc = self.quality[columns].round(3).to_string(index=False)
        return f"{words.AUC_HEADING}\n{auc}"

    def extractable(self, tries: int = 100, chance: float = 0.5) -> pd.DataFrame:
        """Would the model produce a text's suffix in n = ``tries`` tries with probability p =
        ``chance``?

        Each try samples at temperature 1, without top-k or top-p, behind the true prefix. A
        measurement.

        Returns:
            One row per text that is long enough, by name, the likeliest first: member, suffix
            (probability in one try), chance (in ``tries``), tries (fewest for ``chance``) and
            extractable.

        Raises:
            ValueError: Numbers out of range, or an audit without ``split``, which scored no suffix.

        Source:
            (n, p)-discoverable extraction, Hayes et al. (2024).
        """
        check_at_least(1, tries=tries)
        check_in("(0, 1)", "chance", chance)
        if self.suffixes is None:
            raise ValueError(
                "extractable: no suffix was scored; audit with scoring={'split': (50, 50)}"
            )
        log_probs = self.suffixes.dropna().sort_values(ascending=False, kind="stable")
        with np.errstate(divide="ignore", over="ignore"):
            missed = np.log1p(-np.exp(log_probs.to_numpy()))  # log of the chance that one try fails
            needed = np.where(missed < 0, np.ceil(np.log1p(-chance) / missed), np.inf)
        within = -np.expm1(tries * missed)  # chance of a try, of all, that does not fail
        columns = {
            "member": self.scores["member"].reindex(log_probs.index),
            "suffix": np.exp(log_probs),
            "chance": within,
            "tries": np.maximum(needed, 1),
        }
        return pd.DataFrame(columns).assign(extractable=within >= chance)

    def document(
        self,
        *,
        subject: str,
        log: Sequence[str] = (),
        tries: int = 100,
        chance: float = 0.5,
        **fields: Any,
    ) -> AuditDocument:
        """The audit of ``subject`` as page and JSON, with remarks ``log``; the page lists 20
        texts.

        Args:
            subject: What was audited, for the title.
            log: Remarks on the reading of the texts.
            tries: Samples of the model, 1 or more, in which `extractable` asks for a text.
            chance: Least chance, in (0, 1), that one of them is the text.
            fields: Further fields of `AuditDocument`.

        Raises:
            ValueError: ``tries`` or ``chance`` out of range, where endings of texts were scored.
        """
        fields = {"title": words.DOCUMENT_TITLE, **fields}
        if not isinstance(self.scores.index, pd.RangeIndex):
            fields["ids"] = self.scores.index.tolist()
        log = (*log, *self.remarks)
        if self.audits is None:
            document = self._document_without_bound(log, fields)
        else:
            audits = replace(self.audits, reading=(*log, *self.audits.reading))
            document = audits.document(**fields)
        tables: dict[str, Any] = {
            "attacks": self.quality.to_dict("records"),
            "blind": self.blind.to_dict("records"),
        }
        sections = [
            _aucs("Scores", self.quality, words.NO_BOUNDS),
            _aucs("Without the model", self.blind, words.WITHOUT_THE_MODEL),
        ]
        if self.suffixes is not None:
            tables["extraction"], section = self._extraction(tries, chance)
            sections.append(section)
        answers = tuple(replace(answer, about=subject) for answer in document.answers)
        return replace(
            document,
            answers=answers,
            sections=tuple(sections),
            more={**document.more, **tables},
        )

    def _document_without_bound(
        self, log: Sequence[str], fields: Mapping[str, Any]
    ) -> AuditDocument:
        """The document where the sides differ without the model: scores, and why no bound is
        given.

        `document` names what the answer is about.
        """
        name = _audited_score(self.scores, self.attack)
        headline = words.no_bound(self.refused)
        answer = Answer(about="", epsilon=None, headline=headline, claim="", warnings=tuple(log))
        return AuditDocument(
            scores=MembershipScores.from_labels(self.scores[name], self.scores["member"]),
            audits=(_together(refused=self.refused),),
            answers=(answer,),
            limits=((None, None),),  # of the one answer: no epsilon to judge, nor one to show
            design=None,
            warnings=tuple(log),
            **fields,
        )

    def _extraction(self, tries: int, chance: float) -> tuple[dict[str, Any], TableSection]:
        """What can be extracted in so many tries with this chance, as a value of the JSON and as a
        section of the page, which lists 20 texts.
        """
        frame = self.extractable(tries, chance)
        rows = frame.assign(name=frame.index)[frame["extractable"]].to_dict("records")
        members = int(frame["member"].sum())
        extracted = sum(bool(row["member"]) for row in rows)
        summary = words.extraction(
            tries,
            chance,
            members=(extracted, members),
            nonmembers=(len(rows) - extracted, len(frame) - members),
            short=len(self.scores) - len(frame),
        )
        section = TableSection(
            title="Extraction",
            text=summary,
            remark=words.extraction_remark(min(20, len(rows)), len(rows)),
            headings=("Text", "Member", "Probability in one try", "Tries needed"),
            rows=[
                (str(row["name"]), str(row["member"]), f"{row['suffix']:.3g}", f"{row['tries']:g}")
                for row in rows[:20]
            ],
        )
        return {"tries": tries, "chance": chance, "said": summary, "texts": rows}, section


def audit_texts(
    model: Any,
    tokenizer: Any,
    members: Texts | Chats,
    nonmembers: Texts | Chats,
    *,
    on: On = "all",
    contexts: tuple[Texts, Texts] | None = None,
    reference: Any = None,
    attack: str | None = None,
    copies: int = 1,
    ids: tuple[Sequence[str], Sequence[str]] | None = None,
    dates: tuple[Sequence[Any], Sequence[Any]] | None = None,
    scoring: Mapping[str, Any] | None = None,
    **options: Unpack[ScoreOptions],
) -> TextsAudit:
    """Score texts that were trained on and texts that were not, and lower-bound epsilon where both
    are alike.

    First it is asked whether the two sides differ without the model: by their tokens and by the
    order of these (classifiers learn on one half and judge the other), their length, their dates,
    and the loss of the reference. If one of these tells them apart (tests of ranks and of tails,
    0.2 % for all together), scores of the model show that difference as well, and no bound is
    given; up to 1 % it is a warning.

    Guarantee:
        That of `audit_scores`, or of `audit_features` with "learned", with the design of
        ``options``, if coins chose the side of each text as it says and ``attack`` was chosen
        before any score was seen. That nothing tells the sides apart does not prove that coins
        chose them.

    Args:
        model, tokenizer: A causal language model and its tokenizer.
        members, nonmembers: Texts, lists of token numbers, or chats as mappings (messages, ...), 20
            or more on each side.
        on: What training took its loss from: "all" of each text, or "completions" of prompts and
            turns of the assistant alone, with the masks of TRL (`ChatTemplate.learned`).
        contexts: What stands before the members and before the non-members, which is not scored.
        reference: A model of the same tokenizer that was trained on neither side.
        attack: A score of `score_texts`, or "learned", which learns from all of them where to
            guess; None takes "difference" with a reference, else "loss".
        copies: Number of times that each member was trained on in one pass; claims are then about a
            text with all its copies.
        ids: A different name for each member and each non-member; needed with ``coins``.
        dates: The date or a number, such as a year, of each member and of each non-member.
        scoring: Further options of `score_texts`, such as ``split`` to ask what can be extracted.
        options: Options of `audit_scores`; the design is "game" unless it or ``coins`` are given.
            "learned" takes neither ``guess`` nor ``plan``.

    Raises:
        ValueError: Fewer texts, a text on both sides or twice on one, a side that is not its
            coin's, and what `score_texts`, `audit_scores` and `audit_features` refuse.

    >>> from paperlib.models.language import LanguageModelConfig, new_language_model
    >>> from paperlib.models.language import train_tokenizer
    >>> texts = [f"Order {n} was sent to house {n * 7 % 100}." for n in range(100, 180)]
    >>> np.random.default_rng(0).shuffle(texts)  # coins that choose the sides
    >>> tokenizer = train_tokenizer(texts, 300, context=64)
    >>> config = LanguageModelConfig(width=16, layers=1, seed=0)
    >>> untrained = new_language_model(config, len(tokenizer))
    >>> audit = audit_texts(untrained, tokenizer, texts[:40], texts[40:])
    >>> audit.audits.headline.epsilon
    0.0
    """
    written = written_sides(tokenizer, members, nonmembers, on)
    texts, before = check_sides(written.members, written.nonmembers, contexts)
    attack = attack or ("loss" if reference is None else "difference")
    _check_options(attack, reference, copies, options)
    member = np.arange(len(texts)) < len(members)
    names = _text_names(ids, member)
    coins = options.get("coins")
    check_loaded(coins)
    if coins is not None:
        _check_coins(coins, names, member, copies)
    signals: dict[str, FloatArray] = {}
    if dates is not None:
        signals["the date"] = times_of(_beside("dates", dates, member))
    whole = _whole(texts, before)
    is_read_once = isinstance(whole[0], str) and written.learned is None
    with python_warnings.catch_warnings():
        if is_read_once:  # the result holds it as a fact
            python_warnings.simplefilter("ignore", StartedTwiceWarning)
        frame = score_texts(
            model,
            tokenizer,
            texts if written.learned is None else written.learned,
            contexts=before,
            reference=reference,
            **_scoring_options(scoring, reference),
        )
        tokens = text_tokens(tokenizer, whole) if isinstance(whole[0], str) else whole
    frame.index = pd.RangeIndex(len(texts)) if names is None else pd.Index(names)
    suffixes = frame.pop(EXTRACTION) if EXTRACTION in frame else None
    check_choice("attack", attack, (*frame, LEARNED))
    warnings = unknown("model", model, -frame["loss"].to_numpy()) + look_alikes(whole, member)
    if written.by_turns:
        warnings += (completions.BY_TURNS,)
    if "difference" in frame:
        log_probs = _reference_log_probs(frame)
        signals["loss of the reference"] = log_probs
        warnings += unknown("reference", reference, -log_probs)
    blind = blind_table(tokens, member, signals, seed=options.get("seed", 0))
    refused = ""
    audits = None
    if blind["apart"].any():
        refused = refusal(blind)
    else:
        audits = _counted(_bounds(frame, member, attack, options), copies)
        audits = replace(audits, reading=(*warnings, *doubts(blind), *audits.reading))
    rows = [{"attack": name, **quality(member, frame[name].to_numpy())} for name in frame]
    frame["member"] = member
    quality_of_all = pd.DataFrame(rows)
    twice = started_twice(tokenizer, whole) if is_read_once else 0
    return TextsAudit(frame, quality_of_all, blind, attack, audits, refused, suffixes, twice)


def _check_options(attack: str, reference: Any, copies: int, options: ScoreOptions) -> None:
    """Refuse (ValueError) options of `audit_texts` that do not go with each other, before anything
    is computed.
    """
    check_at_least(1, copies=copies)
    if "unit" in options:
        raise ValueError("unit: texts are not averaged; give one text of each")
    if reference is None and attack in COMPARING:
        raise ValueError(f"reference: needed for {attack}, got None")
    if attack == LEARNED and {"guess", "plan"} & set(options):
        raise ValueError(
            'guess, plan: they are about one score; name it in place of attack="learned"'
        )


def _text_names(
    ids: tuple[Sequence[str], Sequence[str]] | None, member: NDArray[np.bool_]
) -> list[str] | None:
    """The name of each text, members first; None without names. A ValueError where their numbers
    are not those of the sides, or one stands twice.
    """
    if ids is None:
        return None
    names = _beside("ids", ids, member)
    check_ids(*ids)
    return names


def _scoring_options(scoring: Mapping[str, Any] | None, reference: Any) -> dict[str, Any]:
    """The options of `score_texts`, with the scores that the blind tests need among the
    attacks.
    """
    chosen = dict(scoring or {})
    attacks = chosen.get("attacks")
    if attacks is None:
        return chosen
    names = [attacks] if isinstance(attacks, str) else [*attacks]
    names.append("loss")
    if reference is not None:
        names.append("difference")
    return {**chosen, "attacks": list(dict.fromkeys(names))}


def _reference_log_probs(frame: pd.DataFrame) -> FloatArray:
    """Mean log-probability of each text under the reference, nats; a ValueError where it is the
    model itself.
    """
    if not frame["difference"].any():
        raise ValueError(
            "reference: its losses are those of the model; name the one it was tuned from"
        )
    return (frame["loss"] - frame["difference"]).to_numpy()


def _counted(audits: Audits, copies: int) -> Audits:
    """The audits, whose claims speak of a text with all its ``copies``, 1 or more."""
    if copies == 1:
        return audits
    sentence = words.with_copies(copies)
    counted = tuple(audit.with_claim(sentence, copies=copies) for audit in audits.audits)
    return replace(audits, audits=counted)


def check_sides(
    members: Texts, nonmembers: Texts, contexts: tuple[Texts, Texts] | None = None
) -> tuple[list[Any], list[Any] | None]:
    """All texts and all contexts (None without), the members' first.

    Raises:
        ValueError: Fewer than 20 texts on a side, a text that stands there twice, or another number
            of contexts than of members.
    """
    for texts_of_side in (members, nonmembers, *(contexts or ())):
        check_list("members, nonmembers, contexts", texts_of_side)
    if min(len(members), len(nonmembers)) < 20:
        raise ValueError(
            f"members, nonmembers: expected 20 or more, got {len(members)}, {len(nonmembers)}"
        )
    texts: list[Any] = [*members, *nonmembers]
    before: list[Any] | None = None if contexts is None else [*contexts[0], *contexts[1]]
    if contexts is not None and len(contexts[0]) != len(members):
        raise ValueError(f"contexts: expected {len(members)} of members, got {len(contexts[0])}")
    whole = Counter(zip(map(tuple, before or texts), map(tuple, texts), strict=True))
    if len(whole) < len(texts):
        (_, text), times = whole.most_common(1)[0]
        repeated = "".join(text) if isinstance(text[0], str) else list(text)
        raise ValueError(
            f"members, nonmembers: {len(texts) - len(whole)} texts stand there more than once, "
            f"such as {repeated[:40]!r} ({times} times); leave copies out, and texts of both sides"
        )
    return texts, before


def _audited_score(scores: pd.DataFrame, attack: str) -> str:
    """The name of the column of ``scores`` that is audited: ``attack`` or, where that is "learned",
    the score expected to be the strongest, by its name alone and not by how well it does here.
    """
    return str(next(name for name in (attack, "difference", "loss", *scores) if name in scores))


def _bounds(
    frame: pd.DataFrame, member: NDArray[np.bool_], attack: str, options: ScoreOptions
) -> Audits:
    """The audits of the score that ``attack`` names; with "learned" those of the score that is
    expected to be the strongest, behind the audit that learns from all columns of ``frame``.
    """
    if options.get("coins") is None:
        options.setdefault("design", "game")
    name = _audited_score(frame, attack)
    audits = audit_scores(MembershipScores.from_labels(frame[name], member), **options)
    if attack != LEARNED:
        return audits
    rows: Any = frame[[name, *frame.columns.drop(name)]].to_numpy()
    learning: dict[str, Any] = dict(options)
    sides = learning.pop("coins", member)
    if isinstance(sides, Coins):
        rows = dict(zip(frame.index, rows, strict=True))
    alone = replace(audits.audits[0], title=words.score_alone(name), purpose=words.ALONE_PURPOSE)
    together = _together(audit_features(rows, sides, **learning))
    return replace(audits, audits=(together, alone, *audits.audits[1:]))


def _together(result: AuditResult | None = None, refused: str = "") -> ScoreAudit:
    """The audit of all scores together: its result, or the reason why there is none."""
    return ScoreAudit(
        title=words.TOGETHER_TITLE,
        kind="lower bound",
        purpose=words.TOGETHER_PURPOSE,
        result=result,
        refused=refused,
    )


def _check_coins(
    coins: Coins, names: list[str] | None, member: NDArray[np.bool_], copies: int
) -> None:
    """Refuse (ValueError) coins of units or of other texts than these, a number of copies where
    the coins have one too, and a text that stands on the other side than its coin says.

    Args:
        names: Name of each text, shape (n,); None where texts have none.
        member: Whether each text was given as a member, shape (n,).
        copies: Times that each member was trained on in one pass, as the user says; 1 by default.
    """
    coins.check_alone("randomized", None)
    if names is None or coins.unit:
        raise ValueError("coins: name each text with ids, and toss one coin for each text")
    if copies > 1 and coins.copies:
        raise ValueError(f"copies: the coins say {coins.copies}; leave it out")
    wrong = np.array(names)[coins.included[coins.places(names)] != member]
    if wrong.size:
        raise ValueError(
            f"coins: {wrong.size} texts stand on the other side than their coin: {wrong[0]}"
        )


def _beside(
    name: str, sides: tuple[Sequence[Any], Sequence[Any]], member: NDArray[np.bool_]
) -> list[Any]:
    """What stands beside the texts, such as dates, one for each, those of members first; a
    ValueError, which begins with ``name``, for another number than that of texts on either side.
    """
    expected = (int(member.sum()), int((~member).sum()))
    sizes = (len(sides[0]), len(sides[1]))
    if sizes != expected:
        raise ValueError(
            f"{name}: expected as many as members and non-members, {expected}, got {sizes}"
        )
    return [*sides[0], *sides[1]]


def _whole(texts: list[Any], before: list[Any] | None) -> list[Any]:
    """Each text with its context, as text or as numbers of tokens."""
    are_strings = isinstance(texts[0], str)
    if before is None:
        before = ["" if are_strings else ()] * len(texts)
    pairs = zip(before, texts, strict=True)
    if are_strings:
        return [context + text for context, text in pairs]
    return [[*context, *text] for context, text in pairs]


def _aucs(title: str, frame: pd.DataFrame, text: str) -> TableSection:
    """A section of the page with the AUC of each row of ``frame``: name, auc, auc_low,
    auc_high.
    """
    table = frame.iloc[:, :4].itertuples(index=False, name=None)
    rows = [(name, with_interval(*auc)) for name, *auc in table]
    return TableSection(title=title, text=text, headings=("Score", "AUC [99 %]"), rows=rows)
