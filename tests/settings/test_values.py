"""What single values must look like, and that no error repeats one (B58, B99)."""

import pytest

from byok.settings import values

CANARY = "canary7f3a"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://box.test/v1/chat/completions", "https://box.test/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://10.0.0.7:8443/openai", "https://10.0.0.7:8443/openai"),
    ],
)
def test_a_base_url_is_kept_but_for_its_end(given: str, kept: str) -> None:
    assert values.base_url(given) == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("https://example.com/tenant/7//", "https://example.com/tenant/7"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("HTTP://localhost:9", "HTTP://localhost:9"),
    ],
)
def test_official_url_is_kept(given: str, kept: str) -> None:
    assert values.official_url(given) == kept


@pytest.mark.parametrize(
    "url",
    [
        f"http://{CANARY}.example",
        f"http://127.1/{CANARY}",
        f"https://user:{CANARY}@h.example",
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
        pytest.param(f"//{CANARY}/v1", "https://host/v1", id="no scheme"),
        pytest.param(f"https://me:{CANARY}@host", "password", id="password"),
        pytest.param(f"https://{CANARY}@host", "password", id="user"),
        pytest.param("https://@host", "password", id="empty user"),
        pytest.param("https://host/v1?", "query", id="empty query"),
        pytest.param(f"https://host/v1#{CANARY}", "fragment", id="fragment"),
        pytest.param("https://host/v1#", "fragment", id="empty fragment"),
        pytest.param("https://host:65536", "port", id="port out of range"),
        pytest.param(f"https://[{CANARY}]", "host", id="no address in brackets"),
        pytest.param("http://[::1]n", "host", id="letters behind the brackets"),
        pytest.param("https://[v1.x]", "host", id="an address of the future"),
        pytest.param(f"https://host/{CANARY}\r\nX: y", "printable", id="newline"),
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
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[fe80::1]",
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


@pytest.mark.parametrize("number", [0, 1024, 65535])
@pytest.mark.case("B99")
def test_port_zero_and_unprivileged_ports_are_accepted(number: int) -> None:
    assert values.port(number) == number


@pytest.mark.parametrize("number", [-1, 1023, 65536])
@pytest.mark.case("B99")
def test_port_outside_the_range_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="from 1024 to 65535") as caught:
        values.port(number)
    assert f"{number}," not in str(caught.value)


@pytest.mark.parametrize("given", [{"": "a"}, {"a b": ""}, {"a": "x\ny"}])
def test_query_with_odd_characters_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        values.query(given)
