"""The receipt in the report of a planned audit, computed again from what the report holds."""

import html
import json
import re
from os import PathLike
from pathlib import Path

from paperlib.audits.score_results import Audits
from paperlib.audits.scores import audit
from paperlib.audits.sealed_plan import SealedPlan
from paperlib.core import Coins
from paperlib.core.sealed import sealed_hash

# In the order of the page, so that what stands in a comment or another hidden part is no part of
# it.
_PART = re.compile(
    r"<!--.*?(?:-->|\Z)|<script[^>]*\bid=[\"']audit-(receipt|result)[\"'][^>]*>(.*?)</script>"
    r"|<(script|style|template|noscript)\b.*?(?:</\3\s*>|\Z)"
    r"|<p class=[\"'](?:figure|number)[\"'] data-headline(?:=\"\")?>([^<]+)</p>",
    re.DOTALL | re.IGNORECASE,
)
_SEALED = ("plan", "coins")


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
    for name, given in (("plan", plan), ("coins", coins)):
        if given.strip() and not re.fullmatch("[0-9a-f]{64}", given.strip().lower()):
            raise ValueError(
                f"{name}: expected the published hash, 64 hexadecimal digits, got {given!r}"
            )
    page = Path(report).read_text(encoding="utf-8", errors="replace")
    found = [
        (name or "shown", text + shown)
        for name, text, _, shown in _PART.findall(page)
        if name or shown
    ]
    blocks = {"shown": "", **dict(found)}
    if len(blocks) < 3:
        raise ValueError(f"{report}: holds no receipt; the report of `paperlib audit --plan` does")
    if len(dict(found)) < len(found):
        raise ValueError(f"{report}: holds several receipts or numbers; ask for an unchanged copy")
    try:
        texts, printed = json.loads(blocks["receipt"]), json.loads(blocks["result"])
        sealed = {
            name: {**json.loads(texts[name]), "hash": sealed_hash(texts[name])} for name in _SEALED
        }
        values = json.loads(texts["scores"])
    except (KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(
            f"{report}: its receipt cannot be read; ask for an unchanged copy"
        ) from None
    followed, tossed = SealedPlan.load(sealed["plan"]), Coins.load(sealed["coins"])
    if len(values) != len(tossed.ids):
        raise ValueError(f"{report}: holds {len(values):,} scores for {len(tossed.ids):,} coins")
    again = audit(dict(zip(tossed.ids, values, strict=True)), coins=tossed, plan=followed)
    computed = again.document().to_dict()
    pairs = {
        f"the published hash of the {name}": (given.strip().lower(), found)
        for name, given, found in (
            ("plan", plan, followed.hash),
            ("coins", coins, tossed.commitment),
        )
        if given.strip()
    }
    pairs |= {name: (printed.get(name), computed[name]) for name in ("headline", "claim", "plan")}
    pairs["epsilon"] = (
        str(printed.get("epsilon"))[:10],
        str(computed["epsilon"])[:10],
    )  # the rest: rounding
    pairs["the number shown"] = (html.unescape(blocks["shown"]), again.headline.headline)
    differ = [
        f"  {name}: {said}, here {found}" for name, (said, found) in pairs.items() if said != found
    ]
    if differ:
        raise ValueError(
            "\n".join([f"{report}: is not the receipt of the planned audit:", *differ])
        )
    return again
