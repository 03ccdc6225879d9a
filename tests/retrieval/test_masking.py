"""Secrets in code are masked, and code that speaks of secrets stays readable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.redact import MARK
from byok.retrieval.masking import mask, mask_lines
from tests.fuzz.target import check_linear

A40 = "Ab3" * 13 + "x"
LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"


@pytest.mark.case("B73")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f"key = sk-{A40}", f"key = {MARK}"),
        (f'client("sk-ant-api03-{A40}")', f'client("{MARK}")'),
        (f"AIza{A40[:35]},", f"{MARK},"),
        (f"# ghp_{A40}", f"# {MARK}"),
        ("xoxb-123456789012-abcDEF", MARK),
        ("aws = AKIAIOSFODNN7EXAMPLE", f"aws = {MARK}"),
        ("jwt: eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", f"jwt: {MARK}"),
        ("postgres://me:geheim@host/db", f"postgres://{MARK}@host/db"),
        ('password = "hunter2hunter"', f'password = "{MARK}"'),
        ("DB_PASSWORD: 'corr%ct-horse'", f"DB_PASSWORD: '{MARK}'"),
        ('{"client_secret": "a1b2c3d4e5f6g7h8"}', f'{{"client_secret": "{MARK}"}}'),
        ('"apiKey" => "0123456789abcdef"', f'"apiKey" => "{MARK}"'),
        ('set -x SECRET_KEY "5f352379324c2246"', f'set -x SECRET_KEY "{MARK}"'),
        ('env.setdefault("API_TOKEN", "a1b2c3d4e5f6a7b8")',
         f'env.setdefault("API_TOKEN", "{MARK}")'),
        ("export AUTH_TOKEN=a1b2c3d4e5f6a7b8", f"export AUTH_TOKEN={MARK}"),
        ("  token: a1b2c3d4e5f6a7b8", f"  token: {MARK}"),
        ("Authorization: Bearer a1b2c3d4e5f6a7b8", f"Authorization: Bearer {MARK}"),
        (r'k = "-----BEGIN RSA PRIVATE KEY-----\n' + LINE + '"', f'k = "{MARK}'),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MARK}"),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_masked(line: str, shown: str) -> None:
    assert mask(line) == shown


@pytest.mark.parametrize(
    "line",
    [
        "",
        "def get_token(password: str, secret: bytes) -> Token:",
        "token = get_token_from_header(request.headers)",
        "password = self.password",
        'password = "password-input"',
        'password = "${DB_PASSWORD}"',
        'password: "<your password 1>"',
        'secret = f"{name}:{salt2}"',
        'raise ValueError("token has 3 parts, not 2 of them")',
        'token_type = "bearer"',
        'key = "settings.theme.v2"',
        'TOKEN_URL = "https://example.org/oauth2/token"',
        "# basic functionality and Basic authentication",
        ".sk-folding-cube-animation { }",
        "risk-management-of-long-words-in-text",
        'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):',
        'url = f"https://{user}:{password}@{host}/"',
        "postgres://<user>:<password>@host",
        "apiKey: process.env.API_KEY1_FOR_TESTS,",
        "access_token = response2.json()['access_token']",
        "const tokens = tokenizer2(sourceText, options1);",
        "password=password2",
        "assert secret == other_secret",
    ],
)
def test_ordinary_code_stays(line: str) -> None:
    assert mask(line) == line


BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


@pytest.mark.case("B73")
@pytest.mark.parametrize(
    ("lines", "hidden"),
    [
        ([BEGIN, LINE, LINE, "abc=", END, "after"], {1, 2, 3}),
        ([BEGIN, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES", "", LINE, END], {4}),
        ([f'key = """{BEGIN}', LINE, f'{END}"""', "word"], {1}),
        ([f'"{BEGIN}\\n"', f'"{LINE}\\n"', f'"{END}\\n"'], {1}),
        ([f"# {BEGIN}", f"# {LINE}", f"# {END}"], {1}),
        ([BEGIN, LINE, LINE], {1, 2}),
        ([f'if "{BEGIN}" in text:', "    pass", "    return"], set()),
        ([BEGIN, "not = a(key)", LINE], set()),
        (["-----BEGIN CERTIFICATE-----", LINE], set()),
    ],
)
def test_the_body_of_a_private_key_is_masked(
    lines: list[str], hidden: set[int]
) -> None:
    expected = [MARK if n in hidden else line for n, line in enumerate(lines)]
    assert mask_lines(lines) == expected


def test_a_key_that_began_above_what_is_shown_is_masked() -> None:
    lines = ["a", BEGIN, LINE, LINE, LINE, END, "b"]
    assert mask_lines(lines, 3, 4) == [MARK, MARK]
    assert mask_lines(lines, 6, 99) == ["b"]


@given(st.lists(st.text(st.sampled_from("ab1=\"' -:/\n.")), max_size=20))
def test_there_are_as_many_lines_as_before(lines: list[str]) -> None:
    assert len(mask_lines(lines)) == len(lines)
    for first in range(len(lines)):
        assert mask_lines(lines, first) == mask_lines(lines)[first:]


@given(st.text(), st.text())
def test_a_key_in_any_line_is_masked(before: str, after: str) -> None:
    assert A40 not in mask(f"{before} sk-{A40} {after}")


@pytest.mark.parametrize(
    "piece",
    ["password", 'secret="', "token=a1", "bearer a1", "-----BEGIN ", "key = ", " ",
     "password   ", "/", "+", "-", "=", '"', "bearer "],
)  # fmt: skip
def test_the_time_is_linear_in_the_line(piece: str) -> None:
    check_linear(lambda size: mask(f"password{piece * size}!"), 1000)
    check_linear(lambda size: mask_lines([BEGIN, f"{piece * size}!"]), 1000)


def test_of_a_long_line_only_the_start_is_masked_and_kept() -> None:
    assert mask("x" * 40_000_000) == "x" * 4096
