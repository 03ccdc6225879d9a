"""Where a conversation may be cut, and what of the user outlives it."""

from byok.core.chat import Message, Part, Role, TextPart
from byok.upstream.window.compaction import (
    NO_IMAGE,
    task_of,
)
from byok.upstream.window.estimate import IMAGE_WEIGHT
from tests.fakes.clock import check_linear
from tests.fakes.histories import PNG, step, user

DONE = Message(Role.ASSISTANT, (TextPart("Done."),))
WITH_RESULTS = Message(
    Role.USER, (TextPart("Image 1:"), PNG, TextPart("Faster, please"))
)


def texts(parts: tuple[Part, ...]) -> list[str]:
    return [p.text for p in parts if isinstance(p, TextPart)]


def test_a_task_keeps_its_images_where_there_is_room() -> None:
    asked = Message(Role.USER, (TextPart("Like this:"), PNG))
    assert task_of((asked, DONE), (), IMAGE_WEIGHT) == asked.parts
    bare = task_of((asked, DONE), (), IMAGE_WEIGHT - 1)
    assert bare == (TextPart("Like this:"), NO_IMAGE)


def test_a_task_includes_user_messages_that_came_with_results() -> None:
    dropped = (user("Port it."), *step(1, "r"), WITH_RESULTS, *step(2, "r"))
    found = texts(task_of(dropped, ["Faster, please"], 5000))
    assert found == ["Port it.", "Faster, please"]
    assert texts(task_of(dropped, ["Something else"], 5000)) == ["Port it."]


def test_a_cut_does_not_scan_endless_user_messages_for_each_result() -> None:
    def find(size: int) -> None:
        said = [m for n in range(size) for m in (*step(n, "r"), user(f"Not {n}."))]
        task_of((user("Port it."), *said), ["z" * 20_000 * size], 5000)

    check_linear(find, 400)


def test_a_huge_task_keeps_its_small_parts_whole() -> None:
    words = "Explain this file."
    [file, said] = texts(task_of((user("f" * 90_000, words), DONE), [words], 5000))
    assert said == words
    assert len(file) < 5000
    assert file.startswith("fff")
    assert file.endswith("fff")
