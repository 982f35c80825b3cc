"""The receipt in the report of a planned audit, computed again from what the report holds."""

import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.audits.score_results import Audits
from paperlib.audits.scores import audit
from paperlib.audits.sealed_plan import SealedPlan
from paperlib.core import Coins
from paperlib.core.sealed import sealed_hash

# Comments and hidden elements match too, so that a receipt or a number inside them is not read.
_BLOCK = re.compile(
    r"<!--.*?(?:-->|\Z)|<script[^>]*\bid=[\"']audit-(receipt|result)[\"'][^>]*>(.*?)</script>"
    r"|<(script|style|template|noscript)\b.*?(?:</\3\s*>|\Z)"
    r"|<p class=[\"'](?:figure|number)[\"'] data-headline(?:=\"\")?>([^<]+)</p>",
    re.DOTALL | re.IGNORECASE,
)
_COMPARED = ("headline", "claim", "plan")  # fields of the result


@dataclass(frozen=True)
class _Receipt:
    """What a page holds of a planned audit, as text or as read from it."""

    plan: SealedPlan
    coins: Coins
    values: list[Any]  #: one score per coin, in the order of the coins
    result: Mapping[str, Any]  #: the JSON of the page
    number: str  #: the headline that a reader of the page sees


def verify_receipt(report: "str | PathLike[str]", *, plan: str = "", coins: str = "") -> Audits:
    """Compute a planned audit again, from the plan, the coins and the scores that its report holds.

    Guarantee:
        Where both published hashes are given and none differs, plan and coins are those that were
        published, and the number is that of the planned audit on these scores. Whether the scores
        come from the model, and training kept to the coins, no receipt shows.

    Args:
        report: The HTML page of an audit with a sealed plan.
        plan, coins: The hashes of both as they were published before training; "" compares none.

    Raises:
        ValueError: A page without a receipt, or what differs, each in a line of its own.
    """
    published = {"plan": plan.strip().lower(), "coins": coins.strip().lower()}
    for name, typed in (("plan", plan), ("coins", coins)):
        if published[name] and not re.fullmatch("[0-9a-f]{64}", published[name]):
            raise ValueError(
                f"{name}: expected the published hash, 64 hexadecimal digits, got {typed!r}"
            )
    receipt = _read_receipt(report)
    values = dict(zip(receipt.coins.ids, receipt.values, strict=True))
    audits = audit(values, coins=receipt.coins, plan=receipt.plan)
    differences = [
        *_hash_differences(published, receipt),
        *_result_differences(receipt, audits),
    ]
    if differences:
        raise ValueError(
            "\n".join([f"{report}: is not the receipt of the planned audit:", *differences])
        )
    return audits


def _read_receipt(report: "str | PathLike[str]") -> _Receipt:
    """The receipt of a page; a ValueError where it has none, several, or one that was changed."""
    blocks = _blocks(report)
    unreadable = ValueError(f"{report}: its receipt cannot be read; ask for an unchanged copy")
    try:
        texts, result = json.loads(blocks["receipt"]), json.loads(blocks["result"])
        sealed_plan, sealed_coins = _with_hash(texts["plan"]), _with_hash(texts["coins"])
        values = json.loads(texts["scores"])
    except (KeyError, TypeError, json.JSONDecodeError):
        raise unreadable from None
    if not isinstance(values, list) or not isinstance(result, dict):
        raise unreadable
    plan, coins = SealedPlan.load(sealed_plan), Coins.load(sealed_coins)
    if len(values) != len(coins.ids):
        raise ValueError(f"{report}: holds {len(values):,} scores for {len(coins.ids):,} coins")
    return _Receipt(plan, coins, values, result, html.unescape(blocks["number"]))


def _blocks(report: "str | PathLike[str]") -> dict[str, str]:
    """Text of a page's blocks "receipt" and "result" and of its "number" ("" without one); a
    ValueError where a block is missing or stands there twice.
    """
    page = Path(report).read_text(encoding="utf-8", errors="replace")
    blocks: dict[str, str] = {}
    several = False
    for name, script, _, number in _BLOCK.findall(page):
        if not (name or number):
            continue  # a comment or a hidden element
        key = name or "number"
        several = several or key in blocks
        blocks[key] = script + number
    blocks.setdefault("number", "")
    if len(blocks) < 3:
        raise ValueError(f"{report}: holds no receipt; the report of `paperlib audit --plan` does")
    if several:
        raise ValueError(f"{report}: holds several receipts or numbers; ask for an unchanged copy")
    return blocks


def _with_hash(text: str) -> dict[str, Any]:
    """The content of a sealed text and the hash of that text, as `SealedPlan.load` reads it."""
    return {**json.loads(text), "hash": sealed_hash(text)}


def _hash_differences(published: Mapping[str, str], receipt: _Receipt) -> list[str]:
    """A line for each published hash ("" for none) that is not the receipt's."""
    computed = {"plan": receipt.plan.hash, "coins": receipt.coins.commitment}
    return [
        _difference(f"the published hash of the {name}", published[name], digest)
        for name, digest in computed.items()
        if published[name] not in ("", digest)
    ]


def _result_differences(receipt: _Receipt, audits: Audits) -> list[str]:
    """A line for each field of the result that has another value on the page than is computed."""
    computed = audits.document().to_dict()
    pairs = {name: (receipt.result.get(name), computed[name]) for name in _COMPARED}
    pairs["the number shown"] = receipt.number, audits.headline.headline
    differences = [
        _difference(name, stated, here) for name, (stated, here) in pairs.items() if stated != here
    ]
    stated, here = receipt.result.get("epsilon"), computed["epsilon"]
    if not _is_same_number(stated, here):
        differences.append(_difference("epsilon", stated, here))
    return differences


def _is_same_number(stated: object, here: float | None) -> bool:
    """Whether a page states the epsilon that is computed.

    The last digits may differ, since versions of the numeric libraries may round them otherwise.
    """
    if here is None or not isinstance(stated, int | float):
        return stated == here
    return math.isclose(stated, here, rel_tol=1e-8, abs_tol=1e-12)


def _difference(name: str, stated: object, computed: object) -> str:
    return f"  {name}: {stated}, here {computed}"
