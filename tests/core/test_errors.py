"""The tree of errors: what each class means to HTTP, to programs and to a person."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core import errors
from byok.core.errors import (
    BadRequest,
    ByokError,
    CannotStart,
    ConfigError,
    ConnectFailed,
    ContextLengthExceeded,
    DaemonGone,
    DataDamaged,
    DiskFull,
    IndexFailed,
    IndexInUse,
    IndexLacksMemory,
    KeyMissing,
    NotAllowed,
    NotReady,
    RefusalKind,
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)

SOURCES = Path(errors.__file__).parent.parent
TREE = {
    ByokError: (Exception, 500, "internal", False),
    ConfigError: (ByokError, 400, "config", False),
    KeyMissing: (ConfigError, 422, "key_missing", False),
    CannotStart: (ByokError, 500, "cannot_start", False),
    DataDamaged: (CannotStart, 422, "corrupt_data", False),
    BadRequest: (ByokError, 400, "bad_request", False),
    NotAllowed: (ByokError, 403, "not_allowed", False),
    NotReady: (ByokError, 503, "not_ready", True),
    DaemonGone: (NotReady, 503, "daemon_gone", True),
    IndexInUse: (ByokError, 422, "index_in_use", False),
    IndexFailed: (ByokError, 503, "index_failed", True),
    DiskFull: (IndexFailed, 507, "storage_full", True),
    IndexLacksMemory: (IndexFailed, 503, "no_memory", True),
    UpstreamError: (ByokError, 422, "upstream_failed", False),
    UpstreamUnreachable: (UpstreamError, 422, "upstream_unreachable", True),
    ConnectFailed: (UpstreamUnreachable, 422, "upstream_connect", True),
    UpstreamTimeout: (UpstreamUnreachable, 422, "upstream_timeout", True),
    UpstreamRefused: (UpstreamError, 422, "upstream_refused", False),
    ContextLengthExceeded: (UpstreamRefused, 422, "context_length", False),
    UpstreamGarbled: (UpstreamError, 422, "upstream_garbled", False),
    UpstreamEmpty: (UpstreamGarbled, 422, "upstream_empty", False),
    UpstreamNotJson: (UpstreamGarbled, 422, "upstream_not_json", False),
}


def test_error_table_of_this_test_is_the_whole_tree() -> None:
    drawn = {c for _, c in inspect.getmembers(errors, inspect.isclass)}
    assert {c for c in drawn if issubclass(c, BaseException)} == set(TREE)
    assert all(f" {c.__name__} " in (errors.__doc__ or "") for c in [*TREE][1:])


@pytest.mark.slow
def test_error_classes_are_defined_in_one_file(trees: dict[Path, ast.Module]) -> None:
    drawn = {kind.__name__ for kind in TREE}
    found = {
        f"{path.name}: {node.name}"
        for path, tree in trees.items()
        if path.name != "errors.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        if drawn & {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    }
    assert found == {"turn.py: BrokenCalls"}  # which no client sees


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_error_class_has_its_place_status_and_code(kind: type[ByokError]) -> None:
    error = kind("It broke.")
    found = (kind.__base__, error.status, error.code, error.retryable)
    assert found == TREE[kind]


@pytest.mark.parametrize("status", [0, 400, 401, 403, 404, 429, 500, 502, 503, 504])
def test_error_status_of_an_upstream_is_kept_and_never_becomes_byoks(
    status: int,
) -> None:
    error = UpstreamRefused("No.", upstream_status=status, retry_after=2.5)
    assert (error.status, error.upstream_status) == (422, status)
    assert error.retry_after == 2.5


@pytest.mark.parametrize(
    ("hint", "sentence"),
    [("", "It broke."), ("Run: byok serve", "It broke. Run: byok serve")],
)
def test_error_sentence_is_the_message_and_the_hint(hint: str, sentence: str) -> None:
    assert ByokError("It broke.", hint=hint).sentence == sentence


def test_one_error_can_differ_from_its_class() -> None:
    error = BadRequest("Too big.", code="too_large", status=413, retryable=True)
    assert (error.code, error.status, error.retryable) == ("too_large", 413, True)
    assert BadRequest("x").status == 400
    assert NotReady("x", retryable=False).retryable is False


@pytest.mark.parametrize("kind", RefusalKind)
def test_error_code_of_a_refusal_is_its_class(kind: RefusalKind) -> None:
    assert UpstreamRefused("No.", kind=kind).code == kind.value


def test_error_of_a_context_overflow_has_a_hint_and_numbers() -> None:
    error = ContextLengthExceeded("Too long.", window=8192, counted=9000)
    assert (error.kind, error.code) == (RefusalKind.CONTEXT_LENGTH, "context_length")
    assert (error.window, error.counted) == (8192, 9000)
    assert "start a new conversation" in error.hint
    assert ContextLengthExceeded("Too long.", hint="Less.").hint == "Less."


def test_error_message_begins_with_the_upstream_but_the_log_text_does_not() -> None:
    error = UpstreamTimeout("it fell silent.", hint="Wait.")
    assert str(error) == "it fell silent."
    error.upstream = "groq"
    assert (str(error), error.sentence) == (
        "groq: it fell silent.",
        "groq: it fell silent. Wait.",
    )
    assert error.log_text == "it fell silent. Wait."


def test_error_log_text_never_holds_an_upstreams_own_words() -> None:
    refused = UpstreamRefused("Your prompt was: secret", upstream_status=400, code="x")
    assert refused.log_text == "refused with 400 (x)"
    assert UpstreamRefused("secret", code="x").log_text == "refused with an event (x)"
    assert NotReady("Wait.", hint="A little.").log_text == "Wait. A little."


def test_a_copy_with_other_words_leaves_the_error_as_it_is() -> None:
    error = ContextLengthExceeded(
        "Key k1.", hint="Not k1.", window=5, upstream="up", upstream_status=400
    )
    shown = error.redact(lambda text: text.replace("k1", "***"))
    assert (str(shown), shown.hint) == ("up: Key ***.", "Not ***.")
    assert (type(shown), shown.window, shown.upstream_status) == (type(error), 5, 400)
    assert "k1" not in repr(shown)
    assert (str(error), error.hint) == ("up: Key k1.", "Not k1.")
    other = error.with_hint("Another.")
    assert (str(other), other.hint, other.window) == ("up: Key k1.", "Another.", 5)


def branches_on_codes(tree: ast.AST) -> Iterator[ast.AST]:
    """Give comparisons of a `.code` with a constant, or with a collection of them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        if any(isinstance(s, ast.Attribute) and s.attr == "code" for s in sides):
            fixed = (ast.Constant, ast.Tuple, ast.Set, ast.List)
            if any(isinstance(s, fixed) or _is_constant_name(s) for s in sides):
                yield node


def _is_constant_name(node: ast.expr) -> bool:
    name = getattr(node, "id", getattr(node, "attr", ""))
    return name.isupper()


def rewritten_errors(tree: ast.AST) -> Iterator[ast.AST]:
    """Give assignments to `.args` or `.hint` of anything but `self`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for part in (part for target in targets for part in ast.walk(target)):
            if isinstance(part, ast.Attribute) and part.attr in ("args", "hint"):
                yield from [] if ast.unparse(part.value) == "self" else [node]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("error.code == 'x'", True),
        ("if GONE != error.code: pass", True),
        ("error.code in ('a', 'b')", True),
        ("last != error.code", False),
        ("isinstance(error, ConfigError)", False),
    ],
)
def test_error_code_compared_in_a_branch_is_found(text: str, *, found: bool) -> None:
    assert bool([*branches_on_codes(ast.parse(text))]) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("error.args = (1,)", True),
        ("error.args, error.hint = 1, 2", True),
        ("error.hint += 'x'", True),
        ("self.hint = 'x'", False),
        ("error.upstream = 'x'", False),
    ],
)
def test_a_rewritten_error_is_found(text: str, *, found: bool) -> None:
    assert bool([*rewritten_errors(ast.parse(text))]) is found


@pytest.mark.slow
def test_no_code_branches_on_codes_or_rewrites_errors(
    trees: dict[Path, ast.Module],
) -> None:
    """Types are branched on: mypy sees them, and a typing error is found."""
    wrong = []
    for path, tree in trees.items():
        found = [*branches_on_codes(tree)]
        if path.name != "errors.py":
            found += rewritten_errors(tree)
        wrong += [f"{path.relative_to(SOURCES)}: {ast.unparse(node)}" for node in found]
    assert wrong == []
