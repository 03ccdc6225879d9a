"""What single values must look like, and that no error repeats one (B58, B99)."""

import pytest

from byok.settings import values

CANARY = "canary7f3a"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com/", "https://api.example.com"),
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://api.example.com/api/paas/v4", "https://api.example.com/api/paas/v4"),
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://10.0.0.7:8443/openai", "https://10.0.0.7:8443/openai"),
    ],
)
def test_a_base_url_is_kept_but_for_slashes_at_its_end(given: str, kept: str) -> None:
    assert values.base_url(given) == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("https://tenant.example.com/", "https://tenant.example.com"),
        ("https://example.com/tenant/7//", "https://example.com/tenant/7"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://[::1]:9/x", "http://[::1]:9/x"),
        ("HTTP://localhost:9", "HTTP://localhost:9"),
    ],
)
def test_official_url_is_kept(given: str, kept: str) -> None:
    assert values.official_url(given) == kept


@pytest.mark.parametrize(
    "url",
    [
        f"http://{CANARY}.example",
        f"HTTP://{CANARY}.example",
        f"http://127.1/{CANARY}",
        f"http://127.0.0.1.{CANARY}",
        f"https://user:{CANARY}@h.example",
        f"https://h.example/?{CANARY}",
        f"https://169.254.169.254/{CANARY}",
        f"ftp://{CANARY}",
        CANARY,
    ],
)
def test_official_url_where_a_token_could_be_read_is_refused(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        values.official_url(url)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(f"file:///etc/{CANARY}", "https://host/v1", id="file"),
        pytest.param(f"ftp://{CANARY}", "https://host/v1", id="ftp"),
        pytest.param(f"//{CANARY}/v1", "https://host/v1", id="no scheme"),
        pytest.param(CANARY, "https://host/v1", id="no URL"),
        pytest.param("https://", "https://host/v1", id="no host"),
        pytest.param(f"https://me:{CANARY}@host", "password", id="password"),
        pytest.param(f"https://{CANARY}@host", "password", id="user"),
        pytest.param("https://@host", "password", id="empty user"),
        pytest.param(f"https://host/v1?key={CANARY}", "query", id="query"),
        pytest.param("https://host/v1?", "query", id="empty query"),
        pytest.param(f"https://host/v1#{CANARY}", "fragment", id="fragment"),
        pytest.param("https://host/v1#", "fragment", id="empty fragment"),
        pytest.param(f"https://host:{CANARY}", "port", id="port in letters"),
        pytest.param("https://host:65536", "port", id="port out of range"),
        pytest.param(f"https://[{CANARY}", "host", id="open bracket"),
        pytest.param(f"https://[{CANARY}]", "host", id="no address in brackets"),
        pytest.param("http://[::1]n", "host", id="letters behind the brackets"),
        pytest.param(f"http://[::1]{CANARY}:80", "host", id="a name behind them"),
        pytest.param("https://[v1.x]", "host", id="an address of the future"),
        pytest.param(f"https://host/{CANARY}\r\nX: y", "printable", id="newline"),
        pytest.param(f" https://{CANARY}", "printable", id="space before"),
        pytest.param("https://hóst", "printable", id="not ASCII"),
    ],
)
@pytest.mark.case("B58")
def test_base_url_that_is_no_http_url_is_refused_without_showing_it(
    url: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected) as caught:
        values.base_url(url)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.1.1:8080",
        "169.16689662",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[fe80::1]",
        "[FEBF::1]",
        "[::ffff:169.254.169.254]",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.case("B58")
def test_link_local_address_is_refused_in_every_spelling(
    scheme: str, host: str
) -> None:
    with pytest.raises(ValueError, match="link-local"):
        values.base_url(f"{scheme}://{host}/v1")


@pytest.mark.parametrize("number", [0, 1024, 8317, 65535])
@pytest.mark.case("B99")
def test_port_zero_and_unprivileged_ports_are_accepted(number: int) -> None:
    assert values.port(number) == number


@pytest.mark.parametrize("number", [-1, 1, 80, 1023, 65536, 10**9])
@pytest.mark.case("B99")
def test_port_outside_the_range_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="from 1024 to 65535") as caught:
        values.port(number)
    assert f"{number}," not in str(caught.value)


@pytest.mark.parametrize(
    ("check", "good", "known"),
    [
        (values.upstream_type, "openai_compatible", "ollama"),
        (values.upstream_type, "demo", "openrouter"),
        (values.upstream_type, "ollama", "openai_compatible"),
        (values.dialect, "", "openai_chat"),
        (values.dialect, "openai_chat", "openai_chat"),
    ],
    ids=lambda value: getattr(value, "__name__", value) or "empty",
)
def test_choice_outside_its_list_is_refused_with_the_list(
    check: "type[str]", good: str, known: str
) -> None:
    assert check(good) == good
    with pytest.raises(ValueError, match=known) as caught:
        check(CANARY)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "my-box", "my_box", "0", "a" * 32])
def test_upstream_name_of_plain_characters_is_accepted(name: str) -> None:
    assert values.UPSTREAM_NAME.match(name)


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "_a", "a b", "a.b", "a:b", "a/b", "ä", "a\n", "a" * 33]
)
def test_upstream_name_with_odd_characters_is_refused(name: str) -> None:
    assert not values.UPSTREAM_NAME.match(name)


def test_fim_mode_is_one_of_a_few() -> None:
    for way in ("auto", "infill", "suffix", "fim", "template", "chat"):
        assert values.fim_mode(way) == way
    with pytest.raises(ValueError, match="must be one of: auto, infill") as caught:
        values.fim_mode(CANARY)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("given", [{}, {"api-version": "2024-10-21"}, {"a": "&=?#"}])
def test_query_of_printable_ascii_is_accepted(given: dict[str, str]) -> None:
    assert values.query(given) == given


@pytest.mark.parametrize("given", [{"": "a"}, {"a b": ""}, {"a": "ä"}, {"a": "x\ny"}])
def test_query_with_odd_characters_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        values.query(given)


def test_query_in_the_base_url_is_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match="query = "):
        values.base_url("https://x/openai/deployments/d?api-version=1")
