"""What an answer that did not come means for a case."""

from byok.core.errors import ConnectFailed, RefusalKind, UpstreamRefused
from byok.upstream.probe.asking import ProbeAnswer, describe, failure
from byok.upstream.probe.report import ProbeOutcome

REFUSAL = UpstreamRefused("sk-1 is not good", kind=RefusalKind.NO_IMAGES)


def test_only_a_refusal_shows_facts() -> None:
    found = failure(ProbeAnswer(refusals=[REFUSAL]), {"images": False})
    assert (found.outcome, found.facts) == (ProbeOutcome.REFUSED, {"images": False})
    found = failure(ProbeAnswer(error=ConnectFailed("No.")), {"images": False})
    assert (found.outcome, found.facts) == (ProbeOutcome.FAILED, {})


def test_an_error_is_described_without_the_words_of_others() -> None:
    assert describe(REFUSAL) == "it broke off with an error (upstream_no_images)"
