"""The deadlines: what each group of the official service is given."""

from byok.routing import Group
from byok.server.http.deadlines import OfficialTiming


def test_each_group_has_its_time() -> None:
    timing = OfficialTiming()
    assert timing.until_first(Group.MODELS) == timing.in_all(Group.MODELS) == 12.0
    assert timing.until_first(Group.COMPLETION) < 5.0
    assert timing.in_all(Group.COMPLETION) == timing.until_first(Group.COMPLETION)
    for group in set(Group) - {Group.MODELS, Group.COMPLETION}:
        assert timing.until_first(group) < 60.0
        assert timing.in_all(group) is None
