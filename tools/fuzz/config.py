"""Any settings file and any variables load, or are refused without their values."""

import json
import os
import re
import tempfile
import tomllib
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.settings import Settings, check_files, example, load_settings
from byok.wiring.key_sources import key_lookup, make_ladder
from byok.wiring.upstreams import make_spec
from tools.fuzz.target import Draw, Target

_CANARY = "sk-canary0123456789abcdef"
_MARK = b"CANARY"
_GAP = b"\x00"
_NAME = re.compile(r"[A-Z_0-9]{1,60}")


def check(data: bytes) -> None:
    """Check a file, and variables behind NUL bytes (`NAME=value`)."""
    draw = Draw(data)
    with_canary = draw.one_in(2)
    content, *rows = draw.rest().split(_GAP)
    if with_canary:
        content = content.replace(_MARK, _CANARY.encode())
        rows = [row.replace(_MARK, _CANARY.encode()) for row in rows]
    variables = {
        name: value
        for row in rows
        for name, _, value in [row.decode("utf-8", "surrogateescape").partition("=")]
        if _NAME.fullmatch(name)
    }
    check_settings(content, {f"BYOK_{name}": v for name, v in variables.items()})


def check_settings(content: bytes, variables: Mapping[str, str]) -> None:
    """Check that settings load or are refused, and that no error shows a value."""
    with _home(content) as path, _environment(variables):
        try:
            settings = load_settings(path)
        except ConfigError as error:
            text = "".join(traceback.format_exception(error)) + error.sentence
            hidden = not _canary_in_names(content, variables)
            assert not (hidden and _CANARY in text), "a value is told"
            assert error.sentence.strip()
            return
        _check_use(settings)


def _check_use(settings: Settings) -> None:
    """Check that loaded settings can be used."""
    try:
        check_files(settings)
    except ConfigError:
        return
    make_ladder(find_paths())
    for name, section in settings.upstreams.items():
        key_lookup(name, section)
        if section.type != "demo":
            spec = make_spec(name, section, settings)
            url = spec.api.url(spec.api.dialect.models_path)
            httpx.Request("GET", url, headers=dict(spec.headers))


@contextmanager
def _home(content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed.toml"
        path.write_bytes(content)
        path.chmod(0o600)
        yield path


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    original = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(original)


def _canary_in_names(content: bytes, variables: Mapping[str, str]) -> bool:
    """Tell whether the canary is, or may be, in the name of a setting."""
    try:
        values: list[Any] = [tomllib.loads(content.decode())]
    except (ValueError, RecursionError):
        values = [{_CANARY: 0}] if not _only_quoted(content) else []
    for value in variables.values():
        try:
            values.append(json.loads(value))
        except (ValueError, RecursionError):
            continue
    return any(_CANARY in name for value in values for name in _names(value))


def _only_quoted(content: bytes) -> bool:
    """Tell whether every canary is in a quoted value."""
    count = content.count(_CANARY.encode())
    quoted = re.findall(rb'= ?"[^"\\\n]*' + _CANARY.encode() + rb'[^"\\\n]*"', content)
    return count == len(quoted)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _names(item)
    if isinstance(value, list):
        for item in value:
            yield from _names(item)


_EXAMPLE = example().encode()
_SECTIONS = re.split(rb"(?m)^(?=#? ?\[)", _EXAMPLE)
_KEYS = sorted(set(re.findall(rb"(?m)^#? ?([a-z_]+) =", _EXAMPLE)))
TARGET = Target(
    check,
    seeds=[
        *(b"\x01" + section.replace(b"# ", b"") for section in _SECTIONS),
        b'\x01[upstreams.a]\nbase_url = "https://CANARY/v1"\nheaders = {X = "CANARY"}',
        b'\x01[upstreams.openai]\napi_key_cmd = ["CANARY"]\n\x00SERVER__PORT=CANARY',
        b'\x01\x00UPSTREAMS={"a": {"base_url": "CANARY"}}\x00LOG__LEVEL=CANARY',
        b'\x01\x00UPSTREAMS__A__BASE_URL=http://[::1]:1/v1\x00CHAT__HEADERS={"a":"CANARY"}',
        b'\x01[upstreams.CANARY]\ntype = "CANARY"\nextra_body = {x = [1, "CANARY"]}',
        b"\x01[server]\nport = 1979-05-27T07:32:00Z\n[limits]\nstreams = inf",
    ],
    words=[
        *(b"[%s]" % name.encode() for name in Settings.model_fields),
        *(key + b" = " for key in _KEYS),
        *(b"CANARY", b'"CANARY"', b"\x00UPSTREAMS__A__", b"\x00SERVER__PORT=", b"'''"),
        *(b"http://", b"https://", b"[::1]", b"169.254.1.1", b"%", b"{", b"}", b"inf"),
        *(
            b"\x00NETWORK__PROXY=",
            b"openai_compatible",
            b"azure",
            b"demo",
            b"nan",
            b"[",
        ),
        *(b"true", b"1979-05-27", b"0x10", b"xn--", b"\\u0000", b"_", b":65536", b"@"),
    ],
)
