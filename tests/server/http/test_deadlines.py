"""The deadlines: what each group of the official service is given."""

from byok.core.routing import EndpointGroup
from byok.server.http.deadlines import OfficialTiming


def test_deadline_of_each_endpoint_group() -> None:
    timing = OfficialTiming()
    assert (
        timing.until_first(EndpointGroup.MODELS)
        == timing.in_all(EndpointGroup.MODELS)
        == 12.0
    )
    assert timing.until_first(EndpointGroup.COMPLETION) < 5.0
    assert timing.in_all(EndpointGroup.COMPLETION) == timing.until_first(
        EndpointGroup.COMPLETION
    )
    for group in set(EndpointGroup) - {EndpointGroup.MODELS, EndpointGroup.COMPLETION}:
        assert timing.until_first(group) < 60.0
        assert timing.in_all(group) is None
