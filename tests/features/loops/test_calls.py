"""Which calls are equal, and how a stranger's call is shown."""

import pytest

from byok.features.loops.watch import AnsweredCall


def call(arguments: str, name: str = "t", content: str = "") -> AnsweredCall:
    return AnsweredCall(name, arguments, content)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": {"x": 1, "y": 2}}', '{"a": {"y": 2, "x": 1}}', True),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": "1"}', '{"a": 1}', False),
        ('{"a": "\\u00e4"}', '{"a": "ä"}', True),
        ("not json", "not json", True),
        ("not json", "not  json", False),
        ("\ud83d", "\ud83d", True),
        ("[" * 2000, "[" * 2000, True),
        ("", "{}", False),
    ],
)
def test_arguments_are_compared_by_value(one: str, other: str, equal: bool) -> None:
    assert (call(one).key == call(other).key) is equal


def test_tool_and_arguments_are_told_apart() -> None:
    assert call("bc", name="a").key != call("c", name="ab").key


def test_an_error_is_no_result_with_the_same_words() -> None:
    good = AnsweredCall("t", "{}", "x")
    bad = AnsweredCall("t", "{}", "x", is_error=True)
    assert good.result != bad.result


def test_a_strangers_words_are_shown_short_and_on_one_line() -> None:
    odd = AnsweredCall("n\x1b[2J" * 99, '{"a":\n "\u202e"}', "\n\n no\nsuch \x07" * 99)
    for shown in (odd.shown, odd.shown_name, odd.shown_error):
        assert len(shown) < 400
        assert shown.isprintable()
    assert call("{}").shown_error == "no result"
