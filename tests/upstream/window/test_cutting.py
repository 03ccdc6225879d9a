"""Where a conversation may be cut, and what of the user outlives it."""

from byok.core.chat import ChatRequest, Message, Part, Role, TextPart
from byok.upstream.window.compaction import (
    cut_points,
    is_question,
    newest_from,
    task_of,
)
from byok.upstream.window.estimate import IMAGE_WEIGHT, weigh
from byok.upstream.window.shorten import NO_IMAGE
from byok.upstream.window.transcript import summary_message
from tests.fakes.histories import PNG, agent, step, user
from tests.fakes.linear import check_linear

DONE = Message(Role.ASSISTANT, (TextPart("Done."),))
TALK = (
    user("One?"),
    DONE,
    user("Two?"),
    *step(1, "r1"),
    *step(2, "r2"),
    DONE,
    user("3"),
)
WITH_RESULTS = Message(
    Role.USER, (TextPart("Image 1:"), PNG, TextPart("Faster, please"))
)


def newest(body: tuple[Message, ...], room: int) -> int:
    return newest_from(body, cut_points(body), [weigh(m) for m in body], room)


def texts(parts: tuple[Part, ...]) -> list[str]:
    return [p.text for p in parts if isinstance(p, TextPart)]


def test_a_cut_lies_before_an_answer() -> None:
    assert cut_points(TALK) == [1, 3, 5, 7]
    assert cut_points(TALK[:1]) == cut_points(()) == []
    assert cut_points(ChatRequest(()).messages) == []


def test_a_cut_leaves_a_quarter_of_the_room_for_the_newest() -> None:
    body = agent(40, 1000)
    start = newest(body, 40_000)
    kept = sum(map(weigh, body[start:]))
    assert body[start].role is Role.ASSISTANT
    assert 10_000 - 1200 < kept <= 10_000


def test_a_cut_never_includes_the_last_step_however_large() -> None:
    body = agent(5, 100_000)
    assert newest(body, 1000) == len(body) - 2


def test_a_cut_spares_the_users_last_message_while_it_is_small() -> None:
    body = (*agent(20, 1000), DONE, user("Now this."), *step(90, "x" * 6000))
    assert body[newest(body, 20_000)] is DONE
    # but not where they would fill the room
    assert newest(body, 8_000) == len(body) - 2


def test_a_question_is_no_user_message_between_results() -> None:
    body = (user("One?"), *step(1, "r"), WITH_RESULTS, DONE, user("Two?"))
    assert [n for n in range(len(body)) if is_question(body, n)] == [0, 5]


def test_a_task_is_the_last_question_word_for_word() -> None:
    assert texts(task_of(TALK[:2], (), 5000)) == ["One?"]
    assert texts(task_of(TALK[:5], (), 5000)) == ["Two?"]
    assert task_of((), (), 5000) == ()


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


def test_a_task_survives_a_second_cut_without_the_old_summary() -> None:
    first = summary_message("Long ago.", task_of(TALK[:5], (), 5000))
    assert texts(task_of((first, *step(3, "r")), (), 5000)) == ["Two?"]
