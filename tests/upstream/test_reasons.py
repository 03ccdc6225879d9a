"""Why an upstream did not answer, as users are told."""

import pytest

from byok.core.errors import (
    BadRequest,
    ByokError,
    ConnectFailed,
    KeyMissing,
    NotReady,
    RefusalKind,
    UpstreamEmpty,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.events import Notice
from byok.upstream.reasons import another_key_notice, reason_of

SECRET = "sk-1 in the upstream's own words"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UpstreamRefused(SECRET, kind=RefusalKind.OVERLOADED), "it is overloaded"),
        (UpstreamRefused(SECRET, upstream_status=500), "it answered 500"),
        (UpstreamRefused(SECRET), "it broke off with an error"),
        (UpstreamTimeout(SECRET), "it is too slow"),
        (ConnectFailed(SECRET), "it cannot be reached"),
        (NotReady(SECRET), "it cannot be reached"),
        (UpstreamEmpty(SECRET), "its answer was empty"),
        (UpstreamGarbled(SECRET), "its answer was broken"),
        (KeyMissing(SECRET), "it has no key here"),
        (BadRequest(SECRET), "it failed"),
    ],
)
def test_the_reason_is_in_words_of_byok(error: ByokError, reason: str) -> None:
    assert reason_of(error) == reason


def test_another_key_is_told_without_any_name_of_keys() -> None:
    error = UpstreamRefused(SECRET, kind=RefusalKind.QUOTA)
    assert another_key_notice("openai", error) == Notice(
        "openai: its quota is used up, so another one of your keys is used."
    )
