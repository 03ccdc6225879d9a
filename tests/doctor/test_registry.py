"""The table of checks."""

from byok.doctor.registry import CHECKS


def test_every_check_has_a_name_of_its_own_and_a_limit() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(0 < check.seconds <= 400 for check in CHECKS)
