"""The tree of errors: what each class means to HTTP, to programs and to a person."""

import errno
import os
import re
from pathlib import Path

import pytest

from byok.core import errors
from byok.core.errors import (
    ContextLengthExceeded,
    NotReady,
    UpstreamRefused,
    UpstreamTimeout,
    from_os_error,
)

SOURCES = Path(errors.__file__).parent.parent


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
    shown = error.rewrite(lambda text: text.replace("k1", "***"))
    assert (str(shown), shown.hint) == ("up: Key ***.", "Not ***.")
    assert (type(shown), shown.window, shown.upstream_status) == (type(error), 5, 400)
    assert "k1" not in repr(shown)
    assert (str(error), error.hint) == ("up: Key k1.", "Not k1.")
    other = error.with_hint("Another.")
    assert (str(other), other.hint, other.window) == ("up: Key k1.", "Another.", 5)


@pytest.mark.parametrize(
    ("number", "file", "sentence", "cure"),
    [
        (errno.ENOSPC, None, "No space left on device.", "disk space"),
        (errno.ENOSPC, "/a/b", "No space left on device (/a/b).", "disk space"),
        (errno.EROFS, "/a/b", "/a/b: Read-only file system.", "BYOK_HOME"),
        (errno.EIO, None, "the system: Input/output error.", ""),
    ],
)
def test_a_refused_file_is_told_with_its_cure(
    number: int, file: str | None, sentence: str, cure: str
) -> None:
    said = from_os_error(OSError(number, os.strerror(number), file))
    assert (said.message, cure in said.hint) == (sentence, True)


BRANCH_ON_CODE = re.compile(
    r"""\.code (?:[!=]=|(?:not )?in) ["'({\[A-Z]"""
    r"""|(?:["'}\]]|\b[A-Z_]+) [!=]= \w+\.code\b"""
)
REWRITTEN = re.compile(r"(?<!self)\.(?:args|hint)(?:, [\w.]+)* [+]?= ")


def test_no_code_branches_on_codes_or_rewrites_errors() -> None:
    """Types are branched on: mypy sees them, and a typing error is found."""
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text("utf-8")
        wrong += [(path.name, match[0]) for match in BRANCH_ON_CODE.finditer(text)]
        if path.name != "errors.py":
            wrong += [(path.name, match[0]) for match in REWRITTEN.finditer(text)]
    assert wrong == []
