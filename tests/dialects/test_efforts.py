import pytest

from byok.dialects.efforts import EFFORTS, nearest_effort, unsent_effort


@pytest.mark.parametrize(
    ("wanted", "accepted", "sent"),
    [
        ("high", ("low", "medium", "high"), "high"),
        ("max", ("low", "medium", "high"), "high"),
        ("minimal", ("low", "high"), "low"),
        ("none", ("low", "high"), "low"),
        ("none", ("none", "high"), "none"),
        ("minimal", ("none", "low"), "low"),
        ("low", ("none",), "none"),
        ("xhigh", ("max", "high"), "high"),
        ("medium", ("low", "max"), "low"),
        ("medium", (), ""),
        ("", ("low", "high"), ""),
        ("enormous", ("low", "high"), ""),
        ("high", ("default", "low"), "low"),
    ],
)
def test_the_nearest_accepted_effort(
    wanted: str, accepted: tuple[str, ...], sent: str
) -> None:
    assert nearest_effort(wanted, accepted) == sent


def test_each_effort_stands_for_itself() -> None:
    assert [nearest_effort(effort, EFFORTS) for effort in EFFORTS] == [*EFFORTS]


def test_the_user_reads_which_effort_was_not_sent() -> None:
    assert "`high`" in unsent_effort("high")
