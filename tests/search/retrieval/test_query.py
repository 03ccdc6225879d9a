"""Requests of any kind become a few weighted terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.types import Kind
from byok.search.retrieval.query import parse_query


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("where is the session cookie signed?", {"session": 1, "cooki": 1, "sign": 1}),
        ("fix the parser", {"fix": 0.5, "parser": 1}),
        ("parseHTTP", {"pars": 1, "http": 1, "=parsehttp": 1}),
        ("GitHub", {"git": 1, "hub": 1, "=github": 1, "github": 0.5}),
        ("xAI keys", {"ai": 1, "=xai": 1, "xai": 0.5, "key": 1}),
        ("get_file", {"get": 0.5, "file": 0.5, "=getfile": 1}),
        ("what is it for", {"what": 1, "is": 1, "it": 1, "for": 1}),
        ("霓虹", {"霓虹": 1}),
        ("", {}),
        ("   \n\t", {}),
        ("\U0001f600" * 64, {}),
        ("a\x00b\x00 zebra\x00", {"zebra": 1}),
        ('foo" OR "bar', {"foo": 1, "bar": 1}),
        ("NEAR(x) AND *", {"near": 1}),
    ],
)  # fmt: skip
def test_query_becomes_terms(text: str, terms: dict[str, float]) -> None:
    assert dict(parse_query(text).terms) == terms


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("the test of login", {Kind.TEST}),
        ("tests, specs and a Fixture", {Kind.TEST}),
        ("where is TestLogin", {Kind.TEST}),
        ("LoginTest", {Kind.TEST}),
        ("test_login_fails", {Kind.TEST}),
        ("latest attestation, contest", set()),
        ("update the README and docs", {Kind.DOC}),
        ("CHANGELOG", {Kind.DOC}),
        ("an example of a test", {Kind.EXAMPLE, Kind.TEST}),
        ("login", set()),
    ],
)
def test_query_names_kinds_of_files(text: str, kinds: set[Kind]) -> None:
    assert parse_query(text).kinds.keys() == kinds


@pytest.mark.parametrize(
    ("text", "wants_tests"),
    [
        ("tests of the connector", True),
        ("which unit tests cover the cookie jar?", True),
        ("Where are the tests for the route tree", True),
        ("test cases for form binding", True),
        ("where is the websocket writer tested", True),
        ("how is the item loader tested?", True),
        ("a client for unit tests", False),
        ("the helper that starts tests of spiders", False),
        ("fix the test of login", False),
        ("latest attestation", False),
        ("连接器的测试", True),
        ("哪些测试覆盖了 cookie jar", True),
        ("用于测试的客户端", False),
        ("如何运行测试", False),
        ("WebSocket ライターのテストはどこですか", True),
        ("テスト用のクライアント", False),
        ("커넥터의 테스트는 어디에 있나요", True),
        ("welche Tests prüfen die Cookies", True),
        ("wo wird der Router getestet?", True),
        ("Client für Tests", False),
        ("qué pruebas cubren las cookies", True),
        ("cliente para pruebas", False),
        ("testes do conector", True),
        ("où est testé le routeur", True),
        ("client pour les tests", False),
        ("тесты для коннектора", True),
        ("клиент для тестов", False),
    ],
)
def test_query_tells_whether_tests_are_what_is_wanted(
    text: str, *, wants_tests: bool
) -> None:
    factor = parse_query(text).kinds.get(Kind.TEST, 0.0)
    assert (factor > 1) == wants_tests


@pytest.mark.parametrize(
    ("text", "wants_docs"),
    [
        ("documentation on caching", True),
        ("where are the docs for plugins?", True),
        ("steps for a beta release", True),
        ("插件的文档", True),
        ("how is the documentation built", False),
        ("the class that renders docs", False),
        ("guide the user to the next step", False),
    ],
)
def test_query_tells_whether_documents_are_what_is_wanted(
    text: str, *, wants_docs: bool
) -> None:
    factor = parse_query(text).kinds.get(Kind.DOC, 0.0)
    assert (factor > 1) == wants_docs


def test_query_leaves_out_what_a_template_of_pull_requests_says() -> None:
    text = (
        "## Description\n<!-- What\nis new? -->\nheredocs of the parser\n"
        "## Type of change\n- [ ] Bug fix\n- [x] New feature\nFixes #123\n"
    )
    assert set(parse_query(text).terms) == {"heredoc", "parser"}
    assert "descript" in parse_query("## Description").terms
    assert "queue" in parse_query("## How the queue works").terms


def test_query_keeps_the_most_significant_terms() -> None:
    many = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))
    text = f"add fix file {many} lastWord finalWord endWord trueName oneMore"
    terms = parse_query(text).terms
    assert len(terms) == 64
    assert {"=lastword", "=finalword", "=onemore"} <= set(terms)
    assert not {"add", "fix", "file"} & set(terms)


def test_query_is_read_up_to_ten_thousand_characters() -> None:
    assert dict(parse_query("x " * 5000 + "zebra").terms) == {}
    assert parse_query("x " * 4990 + "zebra").terms


@pytest.mark.case("B48")
@given(
    st.one_of(
        st.text(),
        st.text("登录检索\x00 \ud800é_$aB9", max_size=300),
        st.sampled_from(["漢" * 100_000, "a" * 100_000, "a_B" * 40_000, "\x00" * 99]),
    )
)
def test_query_of_any_text_has_at_most_64_short_terms(text: str) -> None:
    query = parse_query(text)
    assert len(query.terms) <= 64
    assert all(0 < len(term.removeprefix("=")) <= 64 for term in query.terms)
    assert all(0 < weight <= 1 for weight in query.terms.values())
    assert query.parts <= set(query.terms)
