"""Secrets in code are masked, and code that speaks of secrets stays readable."""

from base64 import b64encode
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.redact import MARK
from byok.search.retrieval.masking import is_generated, mask, mask_lines
from tests.fakes.clock import check_linear

A40 = "Ab3" * 13 + "x"
LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
AWS = "wJalrXUtnFEMI/KxMDENG/bPxRfiCY7EXAMPLEKE"
KEYS = [
    *(f"{kind}k_{mode}_51{'aB3' * 9}" for kind in "sr" for mode in ("live", "test")),
    *(f"gh{kind}_{'aB3' * 12}" for kind in "pousr"),
    *(f"xox{kind}-1234567890-{'aB3' * 8}" for kind in "abceoprs"),
    f"github_pat_11{'aB3' * 7}_{'cD4' * 19}",
    f"whsec_{'aB3' * 10}",
    f"glpat-{'aB3_' * 5}",
    f"npm_{'aB3' * 12}",
    f"SG.{'aB3-' * 5}ab.{'cD4_' * 10}efg",
    f"xapp-1-A012-{'aB3' * 8}",
    f"hooks.slack.com/services/T0{'A1' * 4}/B0{'C2' * 4}/{'aB3' * 8}",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    f"AIza{'aB3' * 11}cd",
    f"ya29.{'aB3_' * 9}",
    f"GOCSPX-{'aB3_' * 7}",
    f"hf_{'aBcDe' * 7}",
    f"sk-{'aB3' * 16}",
    f"sk-proj-{'aB3_-' * 12}x",
    f"sk-ant-api03-{'aB3_-' * 12}x",
    f"sk-or-v1-{'a1b2' * 16}",
    f"gsk_{'aB3' * 17}",
    f"xai-{'aB3' * 26}",
    f"pplx-{'aB3' * 16}",
    f"nvapi-{'aB3_-' * 12}x",
    f"r8_{'aB3' * 12}",
    f"dop_v1_{'a1b2' * 16}",
    f"dckr_pat_{'aB3_-' * 5}x",
    f"pypi-AgEIcHlwaS5vcmc{'aB3_-' * 20}x",
    f"shpat_{'a1b2' * 8}",
    f"hvs.{'aB3_-' * 18}x",
    f"glsa_{'aB3' * 10}_a1b2c3d4",
]


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
        ("redis://:geheim7@host/0", f"redis://{MARK}@host/0"),
        ('password = "hunter2hunter"', f'password = "{MARK}"'),
        (r'    "password = \"hunter2hunter\"\n",',
         rf'    "password = \"{MARK}\"\n",'),
        (r'f("{\"api_key\": \"a1b2c3d4e5f6a7b8\"}")',
         rf'f("{{\"api_key\": \"{MARK}\"}}")'),
        ("  token: a1b2c3d4e5f6a7b8  # of the build", f"  token: {MARK}"),
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
def test_masking_hides_what_looks_like_a_secret(line: str, shown: str) -> None:
    assert mask(line) == shown


@pytest.mark.case("B116")
@pytest.mark.parametrize("frame", ["{}", "key = '{}'", "# {} (old)", "f({}, 1)"])
@pytest.mark.parametrize("path", ["a.py", "a.yml", ""])
@pytest.mark.parametrize("key", KEYS)
def test_masking_hides_keys_of_known_formats(key: str, path: str, frame: str) -> None:
    assert mask(frame.replace("{}", key), path=path) == frame.replace("{}", MARK)


@pytest.mark.case("B116")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("password: hunter2hunter2", f"password: {MARK}"),
        ("  - MYSQL_PASSWORD=db-78n9n", f"  - MYSQL_PASSWORD={MARK}"),
        ("# db.passwd = S3cr3t!  # old", f"# db.passwd = {MARK}"),
        ("export PGPASSWORD=hunter2hunter2;", f"export PGPASSWORD={MARK}"),
        ("password: 20240102", f"password: {MARK}"),
        (f"aws_secret_access_key = {AWS}", f"aws_secret_access_key = {MARK}"),
        ("secretKey: 1234567890abcdefghijkl", f"secretKey: {MARK}"),
    ],
)
@pytest.mark.parametrize("path", ["a.yml", "A.PROPERTIES", "b/Dockerfile", ""])
def test_masking_hides_values_without_quotes_where_they_are_usual(
    line: str, shown: str, path: str
) -> None:
    assert mask(line, path=path) == shown


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
def test_masking_leaves_ordinary_code(line: str) -> None:
    assert mask(line) == line


@pytest.mark.case("B116")
@pytest.mark.parametrize("path", ["a.php", "a.ts", "a.yml", "a.md", ""])
@pytest.mark.parametrize(
    "line",
    [
        "'password' => 'required|string|min:8',",
        "'password' => 'required|alpha_dash|string|max:255',",
        'password: "min:8|max:255"',
        "assert pwd == '/home/u/proj2'",
        'if pwd == "C:\\Users1":',
        'password: "./fixtures/pass1.txt"',
        'secret: "kv/data/app1"',
        'secret = "arn:aws:secretsmanager:eu-1:123"',
        '- key: {{ secret "/config/jwks/rsa.2048.pem" | mindent 10 }}',
        "token: 'color.primary.500.background2'",
        'access_token = "oauth2_access_token_v2_key"',
        'password: "errors.password.min8"',
        "password: getPassword(),",
        "password: getPassword2()",
        "password = hash2(user.password)",
        "password: string",
        "password: string;",
        "password?: string | null",
        "password: Optional[str] = None",
        "password: z.string().min(8),",
        "password: process.env.DB_PASSWORD2",
        "password: ${DB_PASSWORD2}",
        "password: $DB_PASSWORD2",
        "password: {{ vault_password2 }}",
        "password: *default2",
        "password2: password1",
        "password: sha256",
        "password: scram-sha-256",
        "'password' => '--password='.$connection['password'],",
        "password: '#new-password'",
        "password: 'input[name=pw2]'",
        "password: 'Passwort:'",
        "password: '\u5bc6\u78018\u4f4d\u4ee5\u4e0a\u7684\u6570\u5b57'",
        "'password' => '\u09aa\u09be\u09b8\u0993\u09af\u09bc\u09be\u09b0\u09cd\u09a1',",
        'data-resetpassword="%VITE_RESET_PASSWORD%"',
        '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQGHVx==",',
        "h1:Kw2lRVKSCHnZ5j9bGyuKLLAG9z6gzJ0e1nkDbH5KkkQ=",
        "npm_config_registry_of_the_company=https://example.org",
        "glpat-your-token-here-please",
        "sk_test_yourSecretKeyGoesHere",
        'expr: count_over_time(|~ "http(s?)://(\\w+):(\\w+)@")',
    ],
)
def test_masking_leaves_code_about_passwords_in_every_language(
    line: str, path: str
) -> None:
    assert mask(line, path=path) == line


BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
PGP = "-----BEGIN PGP PRIVATE KEY BLOCK-----"


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
        ([PGP, "Version: 1", "", LINE, "=aBc1", PGP.replace("BEGIN", "END")], {3, 4}),
        ([f'if "{BEGIN}" in text:', "    pass", "    return"], set()),
        ([BEGIN, "not = a(key)", LINE], set()),
        (["-----BEGIN CERTIFICATE-----", LINE], set()),
    ],
)
def test_masking_hides_the_body_of_a_private_key(
    lines: list[str], hidden: set[int]
) -> None:
    expected = [MARK if n in hidden else line for n, line in enumerate(lines)]
    assert mask_lines(lines) == expected


@given(st.lists(st.text(st.sampled_from("ab1=\"' -:/\n.")), max_size=20))
def test_masking_keeps_the_number_of_lines(lines: list[str]) -> None:
    assert len(mask_lines(lines)) == len(lines)
    for first in range(len(lines)):
        assert mask_lines(lines, first) == mask_lines(lines)[first:]


@given(st.text(), st.text())
def test_masking_hides_a_key_in_any_line(before: str, after: str) -> None:
    assert A40 not in mask(f"{before} sk-{A40} {after}")


@pytest.mark.parametrize(
    "piece",
    ["password", 'secret="', "token=a1", "bearer a1", "-----BEGIN ", "key = ", " ",
     "password   ", "/", "+", "-", "=", '"', "bearer ", "sk_live_", "glpat-a.", "SG.a",
     "password: a1", "<password>", "token: 'a.b1", "a1(|[", "A1b"],
)  # fmt: skip
def test_masking_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: mask(f"password{piece * size}!"), 1000)
    check_linear(lambda size: mask(f"password: {piece * size}", path="a.yml"), 1000)
    check_linear(lambda size: mask_lines([BEGIN, f"{piece * size}!"]), 1000)


def test_masking_keeps_only_the_start_of_a_long_line() -> None:
    assert mask("x" * 40_000_000) == "x" * 4096


# Values that are secrets, and ordinary code that stands in the same place


def test_secret_value_of_a_random_key_is_nearly_always_recognised() -> None:
    source = Random(7)
    keys = [b64encode(source.randbytes(30)).decode() for _ in range(1000)]
    assert sum(map(is_generated, keys)) >= 980
