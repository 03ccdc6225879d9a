"""Judge whether a task is solved, and count files that a model printed in the chat.

Texts are compared by their meaning. Python is parsed and never run: positions,
comments, docstrings, annotations, names of local variables and the order of imports are
ignored. JSON and TOML are compared by their values. Texts come from models, so one that
is too large or too deep counts as unparsable.
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
_MAX_DEPTH, _MAX_LINE_CHARS = 60, 2000
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NUMBER = re.compile(r"\s*\d+\t")  # the prefix of lines that tools show
_MAX_SNIPPET_LINES, _MIN_FILE_LINES = 30, 3
_MAX_BLOCKS = 500  # of one text
_SHARED_PERCENT = 60  # of the lines of a file


def find_fault(task: TrialTask, after: Mapping[str, str], answer: str) -> str:
    """Return why a task is not solved, "" if it is.

    `after` are the files afterwards, `answer` is the last text for the user.
    """
    for path in sorted({*task.before, *task.wanted, *after}):
        if fault := _fault_of_file(task, path, after.get(path)):
            return fault
    normalised = answer.lower().replace("’", "'")  # many models write ’
    for group in task.answer:
        if not any(text.lower() in normalised for text in group):
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
    if any(meaning == find_meaning(path, solution) for solution in accepted):
        return ""
    if path in task.wanted:
        return f"{path} is not as wanted"
    return f"{path} was changed, which nobody asked for"


class NotParsed(ValueError):
    """The text is invalid in the format of its file, or too large or deep."""


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
        warnings.simplefilter("ignore")  # such as that about an invalid escape
        tree = ast.parse(text)
    cleaned = _Cleaner().visit(tree)
    cleaned.body.sort(key=_order)
    return ast.dump(cleaned)


def _check_depth(text: str) -> None:
    """Refuse a text that could exhaust the stack of the parser.

    Brackets in strings count as well; the files of these tasks have few of those.
    """
    deep = depth = 0
    for char in text:
        if char in "([{":
            depth += 1
            deep = max(deep, depth)
        elif char in ")]}":
            depth -= 1
    if deep > _MAX_DEPTH or any(
        len(line) > _MAX_LINE_CHARS for line in text.split("\n")
    ):
        raise NotParsed("too deep, or a line is too long")


def _order(statement: ast.stmt) -> tuple[int, str]:
    """Return a sort key: imports are sorted; other statements follow in their order."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return (0, ast.dump(statement))
    return (1, "")


class _Cleaner(ast.NodeTransformer):
    """Removes docstrings and annotations, and renames local variables."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return _number_locals(self._without_docstring(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return _number_locals(self._without_docstring(node))

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


def _number_locals(function: ast.AST) -> ast.AST:
    """Replace the names of a function's local variables by numbers.

    Parameters, and names that are global or nonlocal, keep their names.
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
    long_enough = [lines for lines in files.values() if len(lines) >= _MIN_FILE_LINES]
    blocks = (b for text in texts for b in islice(fenced_blocks(text), _MAX_BLOCKS))
    return sum(_is_file(block, long_enough) for block in blocks)


def _is_file(block: list[str], files: list[frozenset[str]]) -> bool:
    if len(block) > _MAX_SNIPPET_LINES:
        return True
    lines = _lines(block)
    return any(100 * len(lines & file) >= _SHARED_PERCENT * len(file) for file in files)


def _lines(lines: Iterable[str]) -> frozenset[str]:
    bare = (_NUMBER.sub("", line, count=1).strip() for line in lines)
    return frozenset(line for line in bare if line)


def fenced_blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each fenced block; an unclosed one reaches to the end."""
    mark = ""
    block: list[str] = []
    for line in text.splitlines():
        fence = _FENCE.match(line)
        is_end = fence and fence[1].startswith(mark) and not line[fence.end() :].strip()
        if not mark and fence:
            mark, block = fence[1], []
        elif mark and is_end:
            yield block
            mark = ""
        elif mark:
            block.append(line)
    if mark:
        yield block
