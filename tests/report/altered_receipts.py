"""Altered copies of a receipt: what somebody may change so that a page says something else."""

import json
import re

FALSE = "0.002"
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
GOOD = "<p class=receipt-good>Every check passed.</p>"


def block_of(html: str, name: str) -> str:
    """The text of a page's JSON block: "receipt" or "result"."""
    found = re.search(rf"<script type='application/json' id='audit-{name}'>(.*?)</script>", html)
    assert found is not None
    return found[1]


def inside(content: object) -> str:
    """JSON that may stand inside a page."""
    return json.dumps(content).replace("<", "\\u003c")


class Altered:
    """The copies of one page, each by what was changed."""

    def __init__(self, html: str):
        self.html = html
        headline = re.search("<p class='number'>([^<]+)</p>", html)
        assert headline is not None
        self.full = headline[0]
        epsilon = re.search(r"ε ≥ (\d+\.\d{3})", headline[1])
        assert epsilon is not None
        self.number = epsilon[1]
        self.false = f"<p class='number'>{headline[1].replace(self.number, FALSE)}</p>"
        self.result, self.receipt = block_of(html, "result"), block_of(html, "receipt")

    def pages(self) -> dict[str, str]:
        """All copies."""
        return self.seen() | self.unseen() | self.results() | self.receipts()

    def seen(self) -> dict[str, str]:
        """Copies that show something else to a reader."""
        html, full, false = self.html, self.full, self.false
        start, rest = html.split("<script type='application/json'", 1)
        every = start.replace(self.number, FALSE).replace(full.replace(self.number, FALSE), full)
        plan_hash = re.findall("Hash of the plan</th><td>([0-9a-f]{64})", html)[0]
        replaced = ".number{font-size:0}.number::after{font-size:1.4rem;content:'0'}"
        covers = "<iframe srcdoc='<h1>ε ≥ 0</h1>' style='position:fixed;inset:0'></iframe>"
        lead = "<p class='lead'>The model is private: no record can be recognised.</p>"
        return {
            "headline number": html.replace(full, full.replace(self.number, FALSE)),
            "true number hidden by CSS": html.replace(full, false + full).replace(
                "</style>", ".main .number{display:none}</style>", 1
            ),
            "true number in <div hidden>": html.replace(full, f"{false}<div hidden>{full}</div>"),
            "CSS content over the number": html.replace("</style>", f"{replaced}</style>", 1),
            "every number but the marked one": f"{every}<script type='application/json'{rest}",
            "claim": html.replace(
                f"for any epsilon below {self.number}.</p>", f"for any epsilon below {FALSE}.</p>"
            ),
            "verdict": re.sub("<p class='lead'>[^<]*</p>", lead, html),
            "limit in the table": html.replace("Limit</th><td>3", "Limit</th><td>1"),
            "confidence in the table": html.replace(
                "Confidence</th><td>0.95", "Confidence</th><td>0.99"
            ),
            "hash in Arabic digits": html.replace(
                f"plan</th><td>{plan_hash}", f"plan</th><td>{plan_hash.translate(ARABIC)}"
            ),
            "headline in full-width digits": html.replace(full, full.translate(FULL_WIDTH)),
            "iframe over the page": html.replace("</body>", f"{covers}</body>"),
        }

    def unseen(self) -> dict[str, str]:
        """Copies that hide the true number from readers, or in which something runs."""
        html, full, false = self.html, self.full, self.false
        forged = (
            "<script>document.addEventListener('submit',e=>{e.preventDefault();document."
            f"querySelector('[role=status]').innerHTML='{GOOD}'}})</script>"
        )
        elsewhere = f"<div id='audit-receipt' hidden>{self.receipt.replace('<', '&lt;')}</div>"
        again = f"<script type='application/json' id='audit-receipt'>{self.receipt}</script>"
        return {
            "unclosed comment": html.replace(full, f"{false}<!-- {full} -->{full}", 1),
            "hidden textarea": html.replace(full, f"{false}<textarea hidden>{full}</textarea>"),
            "details": html.replace(full, f"{false}<details>{full}</details>"),
            "script of the page": html.replace("</main>", f"{forged}</main>"),
            "second receipt": html.replace("</body>", f"{again}</body>"),
            "another element of that id": html.replace("<main>", f"<main>{elsewhere}", 1),
        }

    def results(self) -> dict[str, str]:
        """Copies with another JSON block, which programs read."""
        content, text = json.loads(self.result), self.result
        others = {"members": 1, "warnings": [], "confidence": 0.5, "gate": "passed"}
        epsilon = re.findall(r'"epsilon": ([0-9.]+)', text)[0]
        changed = {
            "JSON epsilon": text.replace(f'"epsilon": {epsilon}', '"epsilon": 0.8'),
            "JSON first of two keys": '{"epsilon": 0.002, ' + text[1:],
            "JSON last of two keys": text.rstrip()[:-1] + ', "epsilon": 0.002}',
            "JSON second verdict": text.rstrip()[:-1] + ', "verdict": {"sentences": ["private"]}}',
            "JSON other fields": inside({**content, **others}),
            "JSON NaN": re.sub(r'"epsilon": [0-9.]+', '"epsilon": NaN', text),
        }
        return {name: self.html.replace(text, new) for name, new in changed.items()}

    def receipts(self) -> dict[str, str]:
        """Copies with another receipt, and files without one."""
        held = json.loads(self.receipt)
        scores = json.loads(held["scores"])
        all_heads = '"coins":"' + "1" * len(scores) + '"'
        first, text = json.dumps(scores[0]), held["scores"]
        assert text.startswith(f"[{first},")
        rest = text.removeprefix(f"[{first}")
        assert '"limit":3.0' in held["plan"]
        changes = {
            "a score": {"scores": f"[0.0{rest}"},
            "score NaN": {"scores": f"[NaN{rest}"},
            "score as text": {"scores": f'["{first}"{rest}'},
            "score null": {"scores": f"[null{rest}"},
            "score true": {"scores": f"[true{rest}"},
            "score beyond all numbers": {"scores": f"[1e999{rest}"},
            "scores of 100,000 brackets": {"scores": "[" * 100_000},
            "last of two keys of the coins": {"coins": f"{held['coins'][:-1]},{all_heads}}}"},
            "first of two keys of the coins": {"coins": f"{{{all_heads},{held['coins'][1:]}"},
            "no limit in the plan": {"plan": held["plan"].replace('"limit":3.0', '"limit":null')},
        }
        pages: dict[str, str] = {"receipt as a list": self.html.replace(self.receipt, "[]")}
        for name, change in changes.items():
            pages[name] = self.html.replace(self.receipt, inside(held | change))
        pages["empty file"] = ""
        pages["10 MB of <!--"] = "<!--" * 2_500_000
        pages["10 MB of <script"] = "<script " * 1_250_000
        pages["1 MB of marked numbers"] = "<p class='number'>" * 30_000
        return pages
