"""The receipt in the report of a planned audit, computed again, and its report written anew."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from paperlib.audits.document import AuditDocument
from paperlib.audits.planned.sealed_plan import SealedPlan
from paperlib.audits.report_words import ReportWords, read_scores_of, read_words, versions
from paperlib.audits.score_results import Audits
from paperlib.audits.scores import audit
from paperlib.core import Coins
from paperlib.core.sealed import sealed_hash
from paperlib.core.visible import visible_text
from paperlib.reading.files import read_file
from paperlib.report.audit.differences import (
    RECEIPT_BLOCK,
    RESULT_BLOCK,
    block_of,
    page_differences,
    parsed_result,
    same_value,
)

_COMPARED = ("epsilon", "plan")  # fields of the result whose meaning is the same in every version


class OtherVersionError(ValueError):
    """A report that another version wrote: its numbers agree, and its page cannot be compared.

    Attributes:
        audits: The audits that are computed here from its plan, coins and scores.
    """

    def __init__(self, message: str, audits: Audits):
        super().__init__(message)
        self.audits = audits


@dataclass(frozen=True)
class Receipt:
    """What a page holds of a planned audit: the plan, the coins, one score per coin, in the order
    of the coins, and what else its report says; ``words`` is None where that cannot be read.
    """

    plan: SealedPlan
    coins: Coins
    scores: list[float]
    words: ReportWords | None

    def audits(self) -> Audits:
        """The audits as planned; a ValueError where coins and scores do not allow them."""
        values = dict(zip(self.coins.ids, self.scores, strict=True))
        seed = 0 if self.words is None else self.words.seed
        return audit(values, coins=self.coins, plan=self.plan, seed=seed)

    def document(self, audits: Audits) -> AuditDocument:
        """The report of these audits with the words of the page; a ValueError without words."""
        words = self.words
        if words is None:
            raise ValueError("words: this receipt holds none")
        ids = None
        if words.named:
            members_first = [*self._ids(included=True), *self._ids(included=False)]
            ids = members_first
        of_file = _warnings_on_file(words, audits)
        document = replace(audits, reading=(*of_file, *audits.reading)).document(
            title=words.title,
            about=words.about,
            facts=words.facts,
            inputs=words.inputs,
            ids=ids,
            groups=words.groups,
            questions=words.questions,
        )
        texts = {**(document.receipt or {}), "report": words.text}
        return replace(document, receipt=texts)

    def _ids(self, *, included: bool) -> list[str]:
        """Ids of the records that their coin included, or of the others, in the order of the
        coins.
        """
        coins = zip(self.coins.ids, self.coins.included.tolist(), strict=True)
        return [name for name, fell in coins if fell == included]


def verify_receipt(report: "str | PathLike[str]", *, plan: str = "", coins: str = "") -> Audits:
    """Compute a planned audit again, from the plan, the coins and the scores that its report holds,
    write the report anew and compare the whole page with it.

    Guarantee:
        The page is the report of the planned audit on these scores, but for the words that nothing
        computes: title, description of the model, facts with their dates, names of groups and
        warnings on the file that was read. Where both published hashes are given and none differs,
        plan and coins are those that were published. Whether the scores come from the model, and
        training kept to the coins, no receipt shows.

    Args:
        report: The HTML page of an audit with a sealed plan.
        plan, coins: The hashes of both as they were published before training; "" compares none.

    Raises:
        OtherVersionError: The numbers agree, and the page was written by another version, or with
            another version of a library that draws or rounds, so that it cannot be compared.
        ValueError: A page without a receipt, or where it differs, each place in a line of its own.
    """
    checked = check_receipt(report, plan=plan, coins=coins)
    if checked.other_version:
        raise OtherVersionError(f"{report}: {checked.other_version}", checked.audits)
    return checked.audits


def _warnings_on_file(words: ReportWords, audits: Audits) -> tuple[str, ...]:
    """Warnings of a page that are of the file of scores, which a receipt does not hold.

    A page lists them before those of the audits, which ``audits``, computed from the receipt, has
    again: what the page has more of is of the file.
    """
    count = len(words.reading) - len(audits.reading)
    return words.reading[: max(0, count)]


@dataclass(frozen=True)
class CheckedReceipt:
    """A receipt in which nothing differs: its audits, computed here, the words of its page that
    nothing computes, and, unless the whole page was compared, why not.
    """

    audits: Audits
    words: ReportWords | None
    other_version: str = ""

    def uncomputed(self) -> list[str]:
        """The words of whoever wrote the page, a line each, in visible letters."""
        if self.words is None:
            return []
        lines = [f"title: {self.words.title}"]
        lines += [f"{name}: {text}" for name, text in self.words.about.to_dict().items() if text]
        lines += [f"{name}: {text}" for name, text in self.words.facts.items()]
        if self.words.groups is not None:
            lines.append(f"groups: {len(set(self.words.groups))}")
        of_file = _warnings_on_file(self.words, self.audits)
        lines += [f"warning on the file: {text}" for text in of_file]
        return [visible_text(line) for line in lines]


def check_receipt(
    report: "str | PathLike[str]", *, plan: str = "", coins: str = ""
) -> CheckedReceipt:
    """Compute a planned audit again from the receipt in its report, and compare the whole page, as
    `verify_receipt` does; a page of another version whose numbers agree is no error here.

    Guarantee:
        That of `verify_receipt`, where ``other_version`` is "".

    Args:
        report: The HTML page of an audit with a sealed plan.
        plan, coins: The hashes of both as they were published before training; "" compares none.

    Returns:
        The audits as computed here; ``other_version`` says why the page was not compared, "" where
        it was.

    Raises:
        ValueError: What `verify_receipt` refuses, with a line for each difference.
    """
    published = _published_hashes(plan, coins)
    page = _read_page(report)
    receipt = read_receipt(page, str(report))
    audits = _computed(receipt, str(report))
    lines = _hash_differences(published, receipt)
    if receipt.words is not None:
        differences = page_differences(page, receipt.document(audits).html())
        if not (lines or differences):
            return CheckedReceipt(audits, receipt.words)
        if receipt.words.versions == versions():
            raise _refusal(report, audits, [*lines, *differences])
    lines += _number_differences(page, audits)
    if lines:
        raise _refusal(report, audits, lines)
    return CheckedReceipt(audits, receipt.words, _other_version(receipt.words))


def _published_hashes(plan: str, coins: str) -> dict[str, str]:
    """The published hashes by name, "" for none; a ValueError for what is no hash."""
    published = {"plan": plan.strip().lower(), "coins": coins.strip().lower()}
    for name, typed in (("plan", plan), ("coins", coins)):
        if published[name] and not re.fullmatch("[0-9a-f]{64}", published[name]):
            raise ValueError(
                f"{name}: expected the published hash, 64 hexadecimal digits, got {typed!r}"
            )
    return published


def _read_page(report: "str | PathLike[str]") -> str:
    """The text of a page; a ValueError where it is no UTF-8.

    Browsers read both ends of a line alike, and mail turns one into the other.
    """
    try:
        return read_file(os.fspath(report)).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError(f"{report}: is no UTF-8 text, as every report is") from None


def read_receipt(page: str, name: str) -> Receipt:
    """The receipt of a page that is called ``name``; a ValueError where it has none, several, or
    one that is not as `paperlib audit --plan` writes it.
    """
    count = page.count(RECEIPT_BLOCK)
    if count != 1:
        several = "several receipts; ask for an unchanged copy"
        none = "no receipt; the report of `paperlib audit --plan` does"
        raise ValueError(f"{name}: holds {several if count else none}")
    try:
        texts = json.loads(block_of(page, RECEIPT_BLOCK) or "")
        plan = SealedPlan.load(_with_hash(texts["plan"]))
        coins = _read_coins(texts["coins"])
        scores = read_scores_of(texts["scores"])
    except (AttributeError, KeyError, TypeError, RecursionError, json.JSONDecodeError):
        raise ValueError(f"{name}: its receipt cannot be read; ask for an unchanged copy") from None
    except ValueError as error:
        raise ValueError(f"{name}: {_in_lines(error)}") from None
    if len(scores) != len(coins.ids):
        raise ValueError(f"{name}: holds {len(scores):,} scores for {len(coins.ids):,} coins")
    return Receipt(plan, coins, scores, read_words(texts.get("report")))


def _with_hash(text: str) -> dict[str, Any]:
    """The content of a sealed text and the hash of that text, as `SealedPlan.load` reads it."""
    return {**json.loads(text), "hash": sealed_hash(text)}


def _read_coins(text: str) -> Coins:
    """The coins of a sealed text; a ValueError where they are not as `paperlib coins` seals them:
    one coin for each id, of which none is empty and none stands twice.
    """
    coins = Coins.load(_with_hash(text))
    names: list[Any] = list(coins.ids)
    texts = [*names, coins.unit, coins.column, coins.sealed, coins.salt]
    numbers = [coins.records, coins.copies]
    if coins.seed is not None:
        numbers.append(coins.seed)
    is_whole = (
        all(isinstance(name, str) for name in texts)
        and all(type(number) is int and number >= 0 for number in numbers)
        and len(coins.included) == len(set(names)) == len(names)
        and "" not in names
        and coins.text == text
    )
    if not is_whole:
        raise ValueError("the coins are not as `paperlib coins` seals them; ask for their file")
    return coins


def _computed(receipt: Receipt, name: str) -> Audits:
    """The audits of the receipt of a page called ``name``; a ValueError, in visible letters, where
    its coins and scores allow none.
    """
    try:
        return receipt.audits()
    except ValueError as error:
        raise ValueError(f"{name}: {_in_lines(error)}") from None


def _in_lines(error: ValueError) -> str:
    """The lines of a message that may quote a page, in visible letters."""
    return "\n".join(map(visible_text, str(error).split("\n")))


def _refusal(report: "str | PathLike[str]", audits: Audits, lines: list[str]) -> ValueError:
    """The error of a page that differs in such places; it names the number computed here."""
    computed = f"computed here from its plan, coins and scores: {audits.headline.headline}"
    text = "\n".join(f"  {line}" for line in [*lines, computed])
    return ValueError(f"{report}: is not the report of the planned audit:\n{text}")


def _hash_differences(published: Mapping[str, str], receipt: Receipt) -> list[str]:
    """A line for each published hash ("" for none) that is not the receipt's."""
    computed = {"plan": receipt.plan.hash, "coins": receipt.coins.commitment}
    return [
        f"the published hash of the {name}: {published[name]}, here {digest}"
        for name, digest in computed.items()
        if published[name] not in ("", digest)
    ]


def _number_differences(page: str, audits: Audits) -> list[str]:
    """A line for the epsilon and for the plan of the page's block for programs where they are not
    as computed here; both mean the same in every version.
    """
    stated = parsed_result(block_of(page, RESULT_BLOCK) or "")
    if stated is None:
        return ["in the block for programs: it is not written as a report writes it"]
    computed = audits.document().to_dict()
    lines: list[str] = []
    for name in _COMPARED:
        if not same_value(stated.get(name), computed[name]):
            texts = [visible_text(value, 300) for value in (stated.get(name), computed[name])]
            lines.append(f"in the block for programs: {name} is {texts[0]}, here {texts[1]}")
    return lines


def _other_version(words: ReportWords | None) -> str:
    """The sentence that another version wrote a page, and what was compared; ``words`` is None
    where the page does not name its version.
    """
    wrote = "a version that it does not name (an earlier one, or a changed page)"
    if words is not None:
        wrote = words.versions
    return (
        f"written by {wrote}; here are {versions()}. Its plan and its epsilon are those computed "
        "here. The rest of the page cannot be compared, and may say anything"
    )
