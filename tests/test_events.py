"""Events of a stream: token counts add up."""

from byok.events import Usage


def test_usage_of_two_answers_adds_up() -> None:
    total = Usage(10, 2, 4, 1).plus(Usage(100, 20, 40, 10))
    assert total == Usage(110, 22, 44, 11)


def test_usage_without_another_stays_as_it_is() -> None:
    usage = Usage(10, 2)
    assert usage.plus(None) is usage
