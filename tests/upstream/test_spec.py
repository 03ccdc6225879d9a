"""The facts of one upstream: which API is used for what."""

from byok.dialects.fim.templates import FimMode
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.http_call import Timeouts
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Route
from tests.fakes.trial_dialect.dialect import TrialDialect

CHAT = Api(OpenAIChat(), "https://h/v1")
TRIAL = Api(TrialDialect(), "https://h/trial")


def test_the_first_api_is_used_and_others_are_found_by_their_dialect() -> None:
    spec = UpstreamSpec("box", (TRIAL, CHAT))
    assert spec.api is TRIAL
    assert spec.find_api("trial") is TRIAL
    assert spec.find_api("openai_chat") is CHAT
    assert spec.find_api("another") is None


def test_what_is_forwarded_goes_to_the_api_that_serves_its_path() -> None:
    spec = UpstreamSpec("box", (TRIAL, CHAT))
    assert spec.find_serving("chat/completions") is CHAT
    assert spec.find_serving("messages") is None
    assert UpstreamSpec("box", (TRIAL,)).find_serving("chat/completions") is None


def test_what_the_vendors_own_api_does_better_is_not_forwarded_beside_it() -> None:
    compatible = Api(OpenAIChat.of("gemini"), "https://h/v1")
    both = UpstreamSpec("box", (TRIAL, compatible))
    alone = UpstreamSpec("box", (compatible,))
    assert both.find_serving("chat/completions") is None
    assert both.find_serving("embeddings") is compatible
    assert alone.find_serving("chat/completions") is compatible


def test_a_url_is_the_dialects() -> None:
    assert CHAT.url("/props") == "https://h/props"
    assert TRIAL.url("catalog?from=2") == "https://h/trial/catalog?from=2"


def test_http_knows_the_address_and_the_timeouts() -> None:
    route = Route("http://proxy:1")
    timeouts = Timeouts(first_byte=7)
    callee = UpstreamSpec("box", (CHAT,), timeouts, breaker_pause=3, route=route).callee
    assert (callee.name, callee.base_url) == ("box", "https://h/v1")
    assert callee.timeouts == timeouts
    assert (callee.breaker_pause, callee.route) == (3, route)


def test_equal_settings_make_equal_upstreams() -> None:
    one, other = (UpstreamSpec("box", (Api(OpenAIChat.of("xai"), "https://h"),))
                  for _ in range(2))  # fmt: skip
    assert one == other
    assert [*one.fim] == [FimMode.CHAT]
