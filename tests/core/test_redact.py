"""No secret survives the redactor, in whatever spelling it is written down."""

import base64
import json
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from byok.core.redact import Redactor
from tests.fakes.clock import check_linear

MARK = "[redacted]"
A40 = "Ab3" * 13 + "x"


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(f"sk-proj-{A40}_-{A40}", id="OpenAI project"),
        pytest.param(f"sk-ant-api03-{A40}", id="Anthropic"),
        pytest.param(f"sk-or-v1-{A40}", id="OpenRouter"),
        pytest.param(f"AIza{A40[:35]}", id="Google"),
        pytest.param(f"github_pat_{A40}_{A40}", id="GitHub fine-grained"),
        pytest.param(f"hf_{A40}", id="Hugging Face"),
        pytest.param("xoxb-123456789012-abcDEF", id="Slack"),
        pytest.param(f"byok_ui_{A40}", id="byok's dashboard"),
        pytest.param("AKIAIOSFODNN7EXAMPLE", id="AWS"),
        pytest.param("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", id="JWT"),
        f"-----BEGIN PRIVATE KEY-----\n{A40}\n-----END PRIVATE KEY-----",  # PEM
    ],
)
@pytest.mark.parametrize("frame", ["{}", "before {} after", '"{}",', "<{}>", "({})"])
def test_redact_removes_what_looks_like_a_secret(secret: str, frame: str) -> None:
    assert Redactor()(frame.replace("{}", secret)) == frame.replace("{}", MARK)


def test_only_secrets_that_were_added_are_removed_as_known() -> None:
    redactor = Redactor()
    redactor.add("plain words")
    text = f"a plain%20words b plain words sk-{A40} password=abcd1234efgh"
    shown = f"a {MARK} b {MARK} sk-{A40} password=abcd1234efgh"
    assert redactor.remove_known(text) == shown
    assert Redactor().remove_known(text) == text


def test_redact_removes_a_private_key_without_its_end() -> None:
    cut = f"before -----BEGIN RSA PRIVATE KEY-----\n{A40}\n{A40}"
    assert Redactor()(cut) == f"before {MARK}"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcd1234efgh", f"Authorization: Bearer {MARK}"),
        ("authorization: bearer  abcd1234", f"authorization: bearer  {MARK}"),
        ("x-api-key: abcd1234efgh", f"x-api-key: {MARK}"),
        ("api_key=abcd1234efgh&x=1", f"api_key={MARK}&x=1"),
        ("{'apiKey': 'abcd1234efgh'}", f"{{'apiKey': '{MARK}'}}"),
        ('{"password":"abcd1234efgh"}', f'{{"password":"{MARK}"}}'),
        ("https://h/?key=abcd1234efgh&x=1", f"https://h/?key={MARK}&x=1"),
        ("access_token = abcd1234efgh", f"access_token = {MARK}"),
        ("SECRET: abcd1234efgh, next", f"SECRET: {MARK}, next"),
        ("\u212aey: abcd1234efgh", f"\u212aey: {MARK}"),
        ("pa\u017f\u017fword=abcd1234efgh", f"pa\u017f\u017fword={MARK}"),
        ("https://me:abcd@host/v1", f"https://{MARK}@host/v1"),
        ("Basic dXNlcjpwYXNz", f"Basic {MARK}"),
        ("basic dXNlcjpwYXNz", f"basic {MARK}"),
    ],
)
def test_redact_keeps_the_name_of_a_secret_value(text: str, kept: str) -> None:
    assert Redactor()(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GET /health 200 in 3 ms",
        '{"max_tokens": 12345678, "tokens": 99999999}',
        "token=abc",
        "risk-management-of-long-words-in-text",
        "the key point, the token limit, no secret",
        "byok:openai:gpt-4.1",
    ],
)
def test_redact_leaves_ordinary_text(text: str) -> None:
    assert Redactor()(text) == text


SECRET = 'p/a+b"c\\d~e&f=='


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(SECRET)[1:-1])[1:-1],
        json.dumps(json.dumps(SECRET)[1:-1].replace("/", "\\/"))[1:-1],
        json.dumps(json.dumps(json.dumps(SECRET)[1:-1])[1:-1])[1:-1],
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_redact_removes_live_secrets_in_their_usual_encodings(form: str) -> None:
    redactor = Redactor()
    redactor.add(SECRET)
    assert redactor(f"<{form}>").rstrip(">").rstrip("=") == f"<{MARK}"


KEYS = st.text(string.ascii_letters + string.digits + "-_.~+/=\\\"'&%", min_size=8)


def in_base64(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


SPELLINGS = st.sampled_from([str, json.dumps, quote, quote_plus, in_base64])


@hypothesis_settings(max_examples=200)
@example("aaaaaaaa", "aaa", "aaa", str)
@example("\\\\\\\\\\\\\\\\", "\\", "\\", str)
@given(KEYS, st.text(), st.text(), SPELLINGS)
def test_redact_removes_a_random_secret_in_random_text(
    secret: str, before: str, after: str, spell: "type[str]"
) -> None:
    redactor = Redactor()
    redactor.add(secret)
    out = redactor(f"{before}{spell(secret)}{after}")
    assert secret not in out
    assert spell(secret) not in out


@hypothesis_settings(max_examples=200)
@given(st.text(), st.lists(KEYS, max_size=3))
def test_redacting_never_fails_and_a_second_time_changes_nothing(
    text: str, secrets: list[str]
) -> None:
    redactor = Redactor()
    for secret in secrets:
        redactor.add(secret)
    once = redactor(text)
    assert redactor(once) == once


@pytest.mark.parametrize(
    "piece", ["key=sy-é", "bearer ", "sk-a", "eyJ.", "://a:", "-----"]
)
def test_redact_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: Redactor()(piece * size), 8000)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("", []),
        ("nothing of the kind", []),
        ("a my-live-secret b my-live-secret", ["my-live-secret"] * 2),
        ("it ends with my-live-", ["my-live-"]),
        ("it ends with my-live", []),  # too short to be told from a word
        (f"a sk-{A40} b", [f"sk-{A40}"]),
        ('{"password": "opensesame1"}', ["opensesame1"]),
    ],
    ids=["empty", "none", "twice", "cut", "cut short", "a pattern", "by its name"],
)
def test_secrets_are_found_where_they_stand(text: str, hidden: list[str]) -> None:
    redactor = Redactor()
    redactor.add("my-live-secret")
    spans = sorted(set(redactor.find_spans(text)))
    assert [text[begin:end] for begin, end in spans] == hidden


@pytest.mark.parametrize("short", ["", "a", "seven77"])
def test_redact_ignores_a_value_too_short_for_a_secret(short: str) -> None:
    redactor = Redactor()
    redactor.add(short)
    assert redactor("a text with seven77 words") == "a text with seven77 words"
