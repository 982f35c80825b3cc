"""Only ``words`` writes sentences: no text of two words or more that is written elsewhere in core,
bounds, audits or report/audit reaches a field of a result that holds words for people.

Texts are followed backwards, in the syntax tree, from what such a field is given: through names of
the function, constants of the module, and functions of the package that are called by name. What
this cannot see: phrases that a function of ``words`` is given by name; texts of one word between
values (``f"run {number}"``); what comes through another field, a loop over attributes, a mapping
whose key is computed, or a parameter; methods of other modules; and files, such as templates.
Errors that are raised are no part of a result.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import paperlib

PACKAGE = Path(str(paperlib.__file__)).parent
ROOMS = ("core", "reading", "bounds", "audits", "report/audit", "attacks/dataset_inference.py")
FIELDS = {
    "claim",
    "assumptions",
    "condition",
    "warnings",
    "notes",
    "headline",
    "sentence",
    "steps",
    "finding",
    "refused",
    "beside",
    "exposed",
    "purpose",
}
"""Fields and properties of results that hold words for people."""

_TWO_WORDS = re.compile(r"[A-Za-z]{2,}[,;:.]? [A-Za-z]{2,}")
_NAMES_OF_BARS = ("label", "desc")  # keywords of `progress` and of tqdm
_OF_TEXTS = ("format", "join", "strip", "replace", "capitalize", "upper", "lower")
_OF_LISTS = ("append", "extend", "insert", "add", "update")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Found = set[tuple[str, str]]
"""Modules, and the texts in them that reach a field."""


def parsed(folder: Path) -> dict[str, ast.Module]:
    """Modules of a package by their dotted names; of a facade its stub, which names where each
    function stands.
    """
    modules: dict[str, ast.Module] = {}
    for path in sorted((*folder.rglob("*.py"), *folder.rglob("__init__.pyi"))):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        modules[name.removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return modules


class Reach:
    """The texts that reach fields of results, in the modules of a package."""

    def __init__(self, modules: dict[str, ast.Module]) -> None:
        self._modules = modules
        self._nodes: dict[str, list[ast.ImportFrom | Function]] = {}
        for module, tree in modules.items():
            kept = (ast.ImportFrom, *_FUNCTIONS)
            self._nodes[module] = [node for node in ast.walk(tree) if isinstance(node, kept)]
        self._seen: set[int] = set()
        self._names: set[tuple[str, str]] = set()
        self.found: Found = set()

    def look_at(self, module: str) -> None:
        """Follow back what the fields of results are given in a module."""
        for function, node in _with_functions(self._modules[module]):
            for value in _given_to_fields(node):
                self._follow(value, function, module)

    def _follow(self, node: ast.AST, function: Function | None, module: str) -> None:
        """Note the texts of an expression, and go on to what it names."""
        if id(node) in self._seen or isinstance(node, ast.Compare | ast.Lambda):
            return
        self._seen.add(id(node))
        text = _text_of(node)
        if text is not None and _TWO_WORDS.search(text):
            self.found.add((module, text))
        if isinstance(node, ast.Name):
            self._follow_name(node.id, function, module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            self._follow_called(node.func, function, module)
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Call):
            self._follow_shown(node.value, module)
        to_words = isinstance(node, ast.Call) and self._is_of_words(node.func, module)
        for part in _parts(node):
            # Words are made of facts here: whole results, too, with all that they were made of.
            if not (to_words and isinstance(_value(part), ast.Name)):
                self._follow(part, function, module)

    def _is_of_words(self, called: ast.expr, module: str) -> bool:
        """Whether a function comes from ``words``."""
        root = called.value if isinstance(called, ast.Attribute) else called
        imports = [node for node in self._nodes[module] if isinstance(node, ast.ImportFrom)]
        names: set[str] = set()
        for node in imports:
            if str(node.module).startswith("paperlib.words"):
                names |= {item.asname or item.name for item in node.names}
        return isinstance(root, ast.Name) and root.id in names

    def _follow_called(
        self, called: ast.Name | ast.Attribute, function: Function | None, module: str
    ) -> None:
        """Go on to what a function or a method of this name returns, and to a text that is filled
        in.
        """
        if isinstance(called, ast.Name):
            self._follow_name(called.id, None, module)
            return
        self._follow_name(called.attr, None, module)
        if called.attr in _OF_TEXTS:
            self._follow(called.value, function, module)

    def _follow_shown(self, call: ast.Call, module: str) -> None:
        """Go on to how an object shows itself that a function returns, by its annotation."""
        for source, node in self._definitions(call.func, module):
            shown = node.returns
            classes = [
                item for item in self._modules[source].body if isinstance(item, ast.ClassDef)
            ]
            for item in classes:
                if isinstance(shown, ast.Name) and item.name == shown.id:
                    self._follow_str(item, source)

    def _definitions(self, called: ast.expr, module: str) -> Iterator[tuple[str, Function]]:
        """The functions of this name, in the module or in those that it takes it from."""
        if not isinstance(called, ast.Name):
            return
        for node in self._nodes[module]:
            if not isinstance(node, ast.ImportFrom):
                if node.name == called.id:
                    yield module, node
                continue
            source = f"{module}.{node.module}" if node.level else str(node.module)
            for item in node.names:
                is_meant = (item.asname or item.name) == called.id
                if is_meant and source in self._modules:
                    yield from self._definitions(ast.Name(item.name), source)

    def _follow_str(self, shown: ast.ClassDef, module: str) -> None:
        """Go on to the text by which objects of a class show themselves."""
        for method in shown.body:
            if isinstance(method, _FUNCTIONS) and method.name == "__str__":
                for value in _returned(method):
                    self._follow(value, method, module)

    def _follow_name(self, name: str, function: Function | None, module: str) -> None:
        """Go on to what a name stands for: in the function, in the module, or in another one."""
        if function is not None:
            for value in _values_of(name, function):
                self._follow(value, function, module)
        if (module, name) in self._names:
            return
        self._names.add((module, name))
        for node in self._nodes[module]:
            if isinstance(node, ast.ImportFrom):
                self._follow_import(name, node, module)
            elif node.name == name:
                for value in _returned(node):
                    self._follow(value, node, module)
        for statement in self._modules[module].body:
            for value in _assigned(name, statement):
                self._follow(value, None, module)

    def _follow_import(self, name: str, node: ast.ImportFrom, module: str) -> None:
        """Go on into another module of the package, but not into ``words``."""
        source = f"{module}.{node.module}" if node.level else str(node.module)
        for item in node.names:
            is_meant = (item.asname or item.name) == name
            if is_meant and source in self._modules and ".words" not in source:
                self._follow_name(item.name, None, source)


def _with_functions(tree: ast.AST) -> Iterator[tuple[Function | None, ast.AST]]:
    """Every node, with the innermost function that it stands in."""

    waiting: list[tuple[Function | None, ast.AST]] = [(None, tree)]
    while waiting:
        function, node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            function = node
        yield function, node
        waiting += [(function, child) for child in ast.iter_child_nodes(node)]


def _given_to_fields(node: ast.AST) -> Iterator[ast.AST]:
    """What a node gives to fields of results: by keyword, in a mapping, or as a property."""
    if isinstance(node, ast.Call):
        yield from (word.value for word in node.keywords if word.arg in FIELDS)
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in FIELDS:
                yield value
    if isinstance(node, _FUNCTIONS) and node.name in FIELDS:
        yield from _returned(node)


def _returned(function: Function) -> Iterator[ast.AST]:
    """What a function returns or yields."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None:
            yield node.value


def _values_of(name: str, function: Function) -> Iterator[ast.AST]:
    """What a name of a function is made of."""
    for node in ast.walk(function):
        yield from _assigned(name, node)
        loops = isinstance(node, ast.For | ast.comprehension)
        if loops and name in _names_in(node.target):
            yield node.iter
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_added = node.func.attr in _OF_LISTS and name in _names_in(node.func.value)
            if is_added:
                yield from node.args


def _assigned(name: str, node: ast.AST) -> Iterator[ast.AST]:
    """What a statement assigns to a name."""
    if isinstance(node, ast.Assign) and any(name in _names_in(part) for part in node.targets):
        yield node.value
    is_single = isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr)
    if is_single and name in _names_in(node.target) and node.value is not None:
        yield node.value


def _names_in(target: ast.AST) -> set[str]:
    """Names that are assigned to: a part of a name or a tuple, not the index of an item."""
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, ast.Subscript | ast.Starred):
        return _names_in(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return set().union(*map(_names_in, target.elts))
    return set()


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What an expression is made of, but for conditions, keys and formats, which nobody reads, the
    rest of the object that an attribute is taken of, and what a progress bar is called.
    """
    if isinstance(node, ast.Attribute):
        return
    if isinstance(node, ast.keyword) and node.arg in _NAMES_OF_BARS:
        return
    for name, value in ast.iter_fields(node):
        if name in ("test", "slice", "keys", "format_spec", "ifs", "func"):
            continue
        if isinstance(node, ast.JoinedStr):
            yield from (item for item in node.values if isinstance(item, ast.FormattedValue))
        elif isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.AST))


def _value(node: ast.AST) -> ast.AST:
    """What a keyword or a star gives to a call, or the node itself."""
    return node.value if isinstance(node, ast.keyword | ast.Starred) else node


def _text_of(node: ast.AST) -> str | None:
    """The text of a constant, with dots in the place of values; None for another node."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(item.value) if isinstance(item, ast.Constant) else "..." for item in node.values
        )
    return None


def found_in(modules: dict[str, ast.Module], rooms: tuple[str, ...]) -> Found:
    """Texts that reach a field of a result given in one of these folders or files."""
    reach = Reach(modules)
    for module in modules:
        path = module.replace(".", "/") + ".py"
        if any(path.startswith(f"paperlib/{room}") for room in rooms):
            reach.look_at(module)
    return {(module, text) for module, text in reach.found if ".words." not in module}


def test_no_sentence_on_a_result_is_written_outside_words():
    assert found_in(parsed(PACKAGE), ROOMS) == set()


TWINS = {
    "by keyword": 'def audited():\n    return Result(claim="nothing is learned")',
    "a formatted one": "def audited(m):\n    return Result(notes=(f'at most {m} examples show',))",
    "a constant": "SAID = 'it speaks of one record'\n"
    "def audited():\n    return Result(condition=SAID)",
    "a helper": "def audited():\n    return Result(warnings=doubts())\n"
    "def doubts():\n    messages = []\n    messages.append('too few records')\n"
    "    return tuple(messages)",
    "a property": "class Result:\n    @property\n    def headline(self):\n"
    "        text = 'no fault found'\n        return text",
    "a mapping": "def facts():\n    return {'assumptions': ['coins are fair']}",
    "a template": "CLAIM = 'a p-value of {}'\n"
    "def audited():\n    return Result(claim=CLAIM.format(1))",
    "another module": "from paperlib.core.twin_of_core import doubt\n"
    "def audited():\n    return Result(warnings=(doubt(3),))",
    "a purpose": "AUDIT = ScoreAudit(title='', purpose='it finds a leak')",
    "an object that shows itself": "from paperlib.core.twin_of_core import spread\n"
    "def audited():\n    return Result(notes=(f'{spread(3)}.',))",
}


@pytest.mark.parametrize("source", TWINS.values(), ids=TWINS)
def test_a_sentence_beside_its_audit_is_found(source):
    """The broken twin: the same package with one sentence in the wrong place."""
    helper = ast.parse(
        "def doubt(m):\n    return f'only {m} records are left'\n"
        "class Spread:\n    def __str__(self):\n        return 'lowest of all games'\n"
        "def spread(m) -> Spread:\n    return Spread(m)\n"
    )
    modules = {"paperlib.audits.twin": ast.parse(source), "paperlib.core.twin_of_core": helper}
    assert len(found_in(modules, ROOMS)) == 1


ALLOWED = {
    "words": "from paperlib.words import ranks as words\n"
    "def audited():\n    return Result(claim=words.claim(1), notes=words.note('members'))",
    "an error": "def audited():\n    raise ValueError('scores: expected numbers, got none')",
    "a docstring": 'def audited():\n    """What is said of it."""\n    return Result(claim="")',
    "a bar": "def audited(records):\n    names = []\n"
    "    for record in progress(records, label='asking the model'):\n"
    "        names.append(record)\n    return Result(notes=names)",
    "a fact": "def audited(kind):\n"
    "    return Result(claim=words.A if kind == 'not tried' else words.B)",
}


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_words_errors_docstrings_and_facts_are_no_sentences_on_results(source):
    assert found_in({"paperlib.audits.twin": ast.parse(source)}, ROOMS) == set()


def test_the_number_of_a_run_is_written_before_a_text_in_one_place():
    found: list[str] = []
    for module, tree in parsed(PACKAGE).items():
        for node in ast.walk(tree):
            text = _text_of(node) or ""
            if isinstance(node, ast.JoinedStr) and text.startswith("run ...: "):
                found.append(module)
    assert found == ["paperlib.words.one_run"]
