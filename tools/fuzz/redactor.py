"""No secret in any usual spelling leaves through the log's own formatter."""

import base64
import json
import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

from byok.core.daemon.logs import RedactingFormatter
from byok.core.redact import Redactor
from tests.fakes.clock import check_linear
from tools.fuzz.target import Draw, Target

_MARK = "[redacted]"
_LETTERS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    ".~+/=\\\"'&%!#$()*,:;<>?@[]^`{|}"
)
_PREFIXES = ("", "", "", "sk-", "sk-ant-api03-", "AIza", "ghp_", "hf_", "gsk_", "xai-")


def _base64(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


def _in_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


# The spellings that `Redactor.add` promises to hide for secrets of eight characters.
_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    quote,
    lambda s: quote(s, safe=""),
    quote_plus,
    _base64,
    lambda s: _base64(s).rstrip("="),
    lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="),
    _in_json,
    lambda s: _in_json(s).replace("/", "\\/"),
)
# Other spellings, whose leaks are counted and are no failure.
_FURTHER: dict[str, Callable[[str], str]] = {
    "repr": lambda s: repr(s)[1:-1],
    "lower-case percent": lambda s: quote(s, safe="").lower() if "%" in quote(s) else s,
    "JSON in JSON": lambda s: _in_json(_in_json(s)),
    "JSON for HTML": lambda s: (
        _in_json(s)
        .replace("&", "\\u0026")
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
    ),
    "hex": lambda s: s.encode().hex(),
    "base64 behind a name": lambda s: _base64("user:" + s),
}
_leaks: dict[str, int] = dict.fromkeys(_FURTHER, 0)
_tried: dict[str, int] = dict.fromkeys(_FURTHER, 0)
_spent = {"seconds": 0.0, "bytes": 0}


def check(data: bytes) -> None:
    """Check a few log calls with a few secrets in them."""
    draw = Draw(data)
    redactor = Redactor()
    secrets = [_secret(draw) for _ in range(1 + draw.upto(2))]
    for secret in secrets:
        redactor.add(secret)
    formatter = RedactingFormatter(redactor)
    spelled: list[str] = []
    written: list[str] = []
    for _ in range(1 + draw.upto(2)):
        secret, spell = draw.of(secrets), draw.of(_SPELLINGS)
        spelled.append(spell(secret))
        written.append(_log(formatter, draw, spelled[-1]))
    text = "\n".join(written)
    for form in (*spelled, *secrets):
        # A form that is part of byok's own words, or of the mark, is no leak.
        if form not in "INFO byok.fuzz: Traceback ValueError: " and form not in _MARK:
            assert form not in text, f"leaked {form!r} of {secrets!r}"
    _count_further(redactor, secrets[0])


def _secret(draw: Draw) -> str:
    prefix = draw.of(_PREFIXES)
    size = 8 + draw.upto(40)
    plain = draw.one_in(2)
    letters = _LETTERS[:64] if plain else _LETTERS
    return prefix + "".join(draw.of(letters) for _ in range(size))


def _log(formatter: RedactingFormatter, draw: Draw, form: str) -> str:
    """Log a secret as one argument or two, in the message, or in an error."""
    before, after = _around(draw), _around(draw)
    cut = draw.upto(len(form))
    message, arguments = draw.of(
        (
            ("%s%s%s", (before, form, after)),
            ("%s%s%s%s", (before, form[:cut], form[cut:], after)),
            ("%(a)s", ({"a": before + form + after},)),
            ((before + form + after).replace("%", "%%") + "%s", ("",)),
            ("", (before, form, after)),
        )
    )
    failure: Any = None
    if not message:
        try:
            raise ValueError(before + form) from RuntimeError(form + after)
        except ValueError as error:
            failure = (type(error), error, error.__traceback__)
        message, arguments = "failed", ()
    record = logging.LogRecord(
        "byok.fuzz", logging.INFO, "file", 1, message, arguments, failure
    )
    text = formatter.format(record)
    assert formatter.format(record) == text
    assert all(char.isprintable() or char in "\n\t" for char in text)
    return text


def _around(draw: Draw) -> str:
    return draw.of(("", " ", '"', "key=", "Bearer ", "sk-", "\\", "=")) + draw.raw(
        12
    ).decode("utf-8", "replace")


def _count_further(redactor: Redactor, secret: str) -> None:
    for name, spell in _FURTHER.items():
        form = spell(secret)
        _tried[name] += 1
        _leaks[name] += form in redactor(f"<{form}>")


def check_time(data: bytes) -> None:
    """Check that twice the text takes twice the time, and measure it."""
    redactor = Redactor()
    for number in range(4):
        redactor.add(f"a-secret-of-the-user-{number}")
    piece = data[:60].decode("utf-8", "replace") or "key"

    def redact(size: int) -> None:
        redactor(piece * (size // len(piece)))

    check_linear(redact, 60_000)
    line = "INFO byok.access: POST /chat-stream 200 1234 ms 0123456789abcdef " * 16
    started = time.process_time()
    for _ in range(10):
        redactor(line)
    _spent["seconds"] += time.process_time() - started
    _spent["bytes"] += 10 * len(line)


def _facts() -> dict[str, Any]:
    kilobytes = max(1, _spent["bytes"]) / 1024
    return {
        "microseconds a KB of log": round(_spent["seconds"] * 1e6 / kilobytes, 1),
        "spellings beyond the promised, kept of tried": {
            name: f"{_leaks[name]}/{_tried[name]}" for name in _FURTHER
        },
    }


TARGET = Target(
    check,
    seeds=[bytes((n * k) % 251 for k in range(160)) for n in range(1, 24)],
    words=[
        *(b"://", b"a:b@", b"Basic ", b"Bearer ", b"key=", b"token: ", b"eyJ", b"sk-"),
        *(b"-----BEGIN PRIVATE KEY-----", b"-----END", b"password='", b"AKIA", b"[red"),
    ],
    slow=check_time,
    facts=_facts,
)
