"""Whether a task is solved, and which files a model only printed into the chat.

Texts are compared by what they mean. Python is parsed and never run: positions,
comments, docstrings, annotations, names of local variables and the order of imports do
not count. JSON and TOML are compared by their values. Texts come from models, so what
is large or deep counts as not parsed.
"""

import ast
import posixpath
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from byok.core.wire.json_body import parse_json
from tools.trials.tasks import TrialTask
from tools.trials.workspace import LARGEST_FILE

Meaning: TypeAlias = Any
_DEEPEST, _LONGEST_LINE = 60, 2000
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NUMBER = re.compile(r"\s*\d+\t")  # as tools show lines
_LONGEST_BLOCK, _SHORTEST_FILE = 30, 3  # lines
_MOST_BLOCKS = 500  # of one text
_SHARE = 60  # percent of the lines of a file


def find_fault(task: TrialTask, after: Mapping[str, str], answer: str) -> str:
    """Return why a task is not solved, "" if it is.

    `after` are the files afterwards, `answer` is the last text for the user.
    """
    for path in sorted({*task.before, *task.wanted, *after}):
        if fault := _fault_of_file(task, path, after.get(path)):
            return fault
    said = answer.lower().replace("’", "'")  # as many models write it
    for group in task.answer:
        if not any(text.lower() in said for text in group):
            return f"the answer does not say '{group[0]}'"
    return ""


def _fault_of_file(task: TrialTask, path: str, text: str | None) -> str:
    before = task.before.get(path)
    accepted = task.wanted.get(path) or (() if before is None else (before,))
    if text is None:
        return f"{path} was not made"
    if not accepted:
        return f"{path} was made, which nobody asked for"
    if text == before:
        return "" if path not in task.wanted else f"{path} was not changed"
    try:
        meaning = find_meaning(path, text)
    except NotParsed:
        return f"{path} cannot be parsed any more"
    if any(meaning == find_meaning(path, wanted) for wanted in accepted):
        return ""
    if path in task.wanted:
        return f"{path} is not as wanted"
    return f"{path} was changed, which nobody asked for"


class NotParsed(ValueError):
    """The text is not what the name of its file says, or too large or deep."""


def find_meaning(path: str, text: str) -> Meaning:
    """Return a value that is equal for texts that mean the same.

    Raises:
        NotParsed: it cannot be parsed within the limits.
    """
    parse = _PARSERS.get(posixpath.splitext(path)[1], _plain)
    if len(text) > LARGEST_FILE:
        raise NotParsed(f"more than {LARGEST_FILE} characters")
    try:
        return parse(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise NotParsed(type(error).__name__) from error


def _python(text: str) -> str:
    _check_depth(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of an invalid escape
        tree = ast.parse(text)
    cleaned = _Cleaner().visit(tree)
    cleaned.body.sort(key=_order)
    return ast.dump(cleaned)


def _check_depth(text: str) -> None:
    """Refuse what could exhaust the stack of the parser, before it is parsed.

    Brackets in strings count as well, which a file of these tasks never has in plenty.
    """
    deep = depth = 0
    for char in text:
        if char in "([{":
            depth += 1
            deep = max(deep, depth)
        elif char in ")]}":
            depth -= 1
    if deep > _DEEPEST or any(len(line) > _LONGEST_LINE for line in text.split("\n")):
        raise NotParsed("too deep, or a line is too long")


def _order(statement: ast.stmt) -> tuple[int, str]:
    """Sort imports, and keep all other statements behind them in their order."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return (0, ast.dump(statement))
    return (1, "")


class _Cleaner(ast.NodeTransformer):
    """Removes what does not count: docstrings, annotations, names of variables."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return _with_plain_locals(self._without_docstring(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return _with_plain_locals(self._without_docstring(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return node
        return self.generic_visit(ast.Assign([node.target], node.value, lineno=0))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        node.names.sort(key=lambda alias: alias.name)
        return node

    def _without_docstring(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    ) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        return self.generic_visit(node)


def _with_plain_locals(function: ast.AST) -> ast.AST:
    """Number the local variables of a function: their names do not count.

    Those of its parameters do, and names that are not only local.
    """
    nodes = [*ast.walk(function)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    kept = {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            kept.update(node.names)
    stored = (node.id for node in names if isinstance(node.ctx, ast.Store))
    local = [*dict.fromkeys(name for name in stored if name not in kept)]
    numbers = {name: f"local {number}" for number, name in enumerate(local)}
    for node in names:
        node.id = numbers.get(node.id, node.id)
    return function


def _json(text: str) -> Meaning:
    return parse_json(text.encode("utf-8", "replace"))


def _plain(text: str) -> list[str]:
    """Return the lines without spaces at their ends, and without empty ones."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


_PARSERS: Mapping[str, Callable[[str], Meaning]] = {
    ".py": _python,
    ".json": _json,
    ".toml": tomllib.loads,
}


def count_printed(texts: Iterable[str], *states: Mapping[str, str]) -> int:
    """Return how many fenced blocks of the texts are files.

    A block is one if it has more than 30 lines, or at least 60 % of the lines of a file
    in one of the states of the repository. Very short files do not count.
    """
    files = {
        text: _lines(text.splitlines()) for state in states for text in state.values()
    }
    wanted = [lines for lines in files.values() if len(lines) >= _SHORTEST_FILE]
    blocks = (b for text in texts for b in islice(fenced_blocks(text), _MOST_BLOCKS))
    return sum(_is_file(block, wanted) for block in blocks)


def _is_file(block: list[str], files: list[frozenset[str]]) -> bool:
    if len(block) > _LONGEST_BLOCK:
        return True
    lines = _lines(block)
    return any(100 * len(lines & file) >= _SHARE * len(file) for file in files)


def _lines(lines: Iterable[str]) -> frozenset[str]:
    bare = (_NUMBER.sub("", line, count=1).strip() for line in lines)
    return frozenset(line for line in bare if line)


def fenced_blocks(text: str) -> Iterator[list[str]]:
    """Give the lines of each fenced block; one without an end goes to the end."""
    mark = ""
    block: list[str] = []
    for line in text.splitlines():
        fence = _FENCE.match(line)
        closes = fence and fence[1].startswith(mark) and not line[fence.end() :].strip()
        if not mark and fence:
            mark, block = fence[1], []
        elif mark and closes:
            yield block
            mark = ""
        elif mark:
            block.append(line)
    if mark:
        yield block
