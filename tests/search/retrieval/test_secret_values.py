"""Values that are secrets, and ordinary code that stands in the same place."""

from base64 import b64encode
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.retrieval.masking import (
    is_bare_password,
    is_generated,
    is_password,
    is_template,
    looks_generated,
)
from tests.fakes.linear import check_linear

WORDS = st.lists(
    st.sampled_from(["user", "access", "token", "color", "Theme", "v2", "API", "500"]),
    min_size=1,
)


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("hunter2hunter2", True),
        ("corr%ct-horse", True),
        ("john.smith99", True),
        ("my-dog-rex-2012", True),
        ("Pass|w0rd", True),
        ("changeme", False),
        ("required|string|min:8", False),
        ("/home/u/proj2", False),
        ("~/.config/app2/key", False),
        ("errors.password.min8", False),
        ("#new-password", False),
        ("--password=", False),
        ("input[name=pw2]", False),
        ("Passwort:", False),
    ],
)
def test_secret_value_chosen_by_people_is_told_from_a_program_name(
    value: str, chosen: bool
) -> None:
    assert is_password(value) is chosen


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("hunter2", True),
        ("S3cr3t!", True),
        ("20240102", True),
        ("password1", False),
        ("user_password2,", False),
        ("scram-sha-256", False),
        ("${PASSWORD2}", False),
        ("*default2", False),
    ],
)
def test_a_value_without_quotes_may_be_a_name(value: str, chosen: bool) -> None:
    assert is_bare_password(value) is chosen


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("a1b2c3d4e5f6a7b8", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("wJalrXUtnFEMI/KxMDENG/bPxRfiCY7EXAMPLEKE", True),
        ("color.primary.500.background2", False),
        ("oauth2_access_token_v2_key", False),
        ("getUserByAccessToken2", False),
        ("/api/v2/token/refresh1", False),
        ("a1b2c3", False),
    ],
)
def test_secret_value_made_by_machines_is_told_from_joined_words(
    value: str, made: bool
) -> None:
    assert is_generated(value) is made


def test_secret_value_of_a_random_key_is_nearly_always_recognised() -> None:
    source = Random(7)
    keys = [b64encode(source.randbytes(30)).decode() for _ in range(1000)]
    assert sum(map(is_generated, keys)) >= 980


@given(WORDS, st.sampled_from("._-/:"))
def test_secret_value_is_never_words_joined_by_anything(
    words: list[str], side: str
) -> None:
    assert not is_generated(side.join(words)) or looks_generated(side.join(words))


@pytest.mark.parametrize(
    "value", ["{name}", "${NAME}", "%s", "<your key>", "$NAME", "xxxxxx", "%NAME%"]
)
def test_secret_value_template_is_recognised(value: str) -> None:
    assert is_template(value)


@pytest.mark.parametrize("piece", ["a", "a1", "A.", "(", "[", "|a", "#a", "%a", "a:"])
def test_the_time_is_linear_in_the_value(piece: str) -> None:
    def judge(size: int) -> None:
        for check in (is_password, is_bare_password, is_generated, is_template):
            check(piece * size + "!1")

    check_linear(judge, 1000)
