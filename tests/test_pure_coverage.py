"""The measurement of coverage: its rooms, its tests, and what it calls enough."""

from scripts.pure_coverage import (
    RoomCoverage,
    Share,
    read_pure_rooms,
    room_coverage,
    unit_tests,
)

SUMMARY = {
    "covered_lines": 9,
    "num_statements": 10,
    "covered_branches": 4,
    "num_branches": 4,
}


def test_coverage_has_tests_to_run_for_each_pure_room() -> None:
    rooms = read_pure_rooms()
    assert {"byok.core.wire", "byok.dialects", "byok.core.redact"} <= {*rooms}
    bare = {"byok.core.chat", "byok.core.conversation_builder", "byok.core.routing"}
    # Those are tested where they are used.
    assert {room for room in rooms if not unit_tests(room)} <= bare


def test_coverage_of_a_room_is_the_sum_of_its_files() -> None:
    files = dict.fromkeys(
        ["byok/core/wire/a.py", "byok/core/wire/b.py", "byok/wired.py"], SUMMARY
    )
    found = room_coverage("byok.core.wire", files)
    assert (found.lines, found.branches) == (Share(18, 20), Share(8, 8))
    assert room_coverage("byok.wired", files).lines == Share(9, 10)


def test_coverage_is_enough_where_lines_and_branches_are() -> None:
    assert RoomCoverage("r", Share(97, 100), Share(0, 0)).is_enough
    assert not RoomCoverage("r", Share(100, 100), Share(96, 100)).is_enough
    assert not RoomCoverage("r", Share(96, 100), Share(100, 100)).is_enough
