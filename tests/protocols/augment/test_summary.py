"""A history summary becomes text in one pass, with everything near it."""

from typing import Any

import pytest

from byok.core.chat import TextPart
from byok.protocols.augment.history import render, render_summary
from byok.protocols.augment.nodes import read_turn
from tests.fakes.bodies import call_node, exchange, image_node, result_node, text_node

END = [
    exchange("Run it.", "Running.", calls=[call_node("e1", "launch", '{"x": 1}')]),
    exchange(nodes=[result_node("e1", "2 failed", is_error=True)], answer="Two fail."),
]


def node(template: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "summary_text": "Lexer done.",
        "summarization_request_id": "r-1",
        "history_beginning_dropped_num_exchanges": 14,
        "history_middle_abridged_text": "wrote tests",
        "history_end": END,
        "message_template": template,
        **fields,
    }


def summary_node(**fields: Any) -> dict[str, Any]:
    return {"id": 1, "type": 10, "history_summary_node": node(**fields)}


def shown(*nodes: dict[str, Any]) -> list[str]:
    turn = render_summary(read_turn({"nodes": list(nodes)}, ""))
    return [p.text for p in turn.content if isinstance(p, TextPart)]


@pytest.mark.parametrize(
    ("placeholder", "value"),
    [
        ("summary", "Lexer done."),
        ("summarization_request_id", "r-1"),
        ("beginning_part_dropped_num_exchanges", "14"),
        ("middle_part_abridged", "wrote tests"),
        ("unknown_one", "{unknown_one}"),
        ("Not A Placeholder", "{Not A Placeholder}"),
    ],
)
def test_summary_template_placeholder_is_filled_or_stays(
    placeholder: str, value: str
) -> None:
    assert render(node(f"<{{{placeholder}}}>"), []) == f"<{value}>"


def test_summary_holds_nothing_that_byok_said() -> None:
    said = "[byok] fake: it answered 401. Check the key."
    wrong: list[str] = []
    for text, kept in (
        (said, ""),
        (f"\n{said}", "\n"),
        (f"Lexer done.\n{said}", "Lexer done.\n"),
        (f"<a>{said}</a>\n<b>x</b>", "<a></a>\n<b>x</b>"),
        (f"<a>x\n{said}\n{said}</a>", "<a>x\n</a>"),
        (f"  {said}\n\nHi.", "\nHi."),
        ("about byok [byok] in a line", "about byok [byok] in a line"),
    ):
        fields = {"summary_text": text, "history_middle_abridged_text": text}
        shown = render(node("{summary}|{middle_part_abridged}", **fields), [])
        if shown != f"{kept}|{kept}":
            wrong.append(f"{text!r} became {shown!r}")
    assert not wrong


@pytest.mark.parametrize(
    "text", ["{summary}", "{middle_part_abridged}", "{x} {{", "\\1"]
)
def test_summary_template_values_may_hold_braces_and_placeholder_names(
    text: str,
) -> None:
    filled = render(node("{summary}/{middle_part_abridged}", summary_text=text), [])
    assert filled == f"{text}/wrote tests"


def test_summary_end_is_tagged_text_in_its_order() -> None:
    assert render(node("{end_part_full}"), []) == (
        "<exchange><user>Run it.</user><assistant>Running.</assistant>"
        '<tool_use name="launch" id="e1">{"x": 1}</tool_use></exchange>\n'
        '<exchange><tool_result id="e1" is_error="true">2 failed</tool_result>'
        "<assistant>Two fail.</assistant></exchange>"
    )


def test_summary_end_truncates_long_results_and_inputs_in_the_middle() -> None:
    long = '{"x": "' + "y" * 5000 + '"}'
    item = exchange(
        nodes=[result_node("e0", "h" * 20_000 + "reference id: 77")],
        calls=[call_node("e1", arguments=long)],
    )
    filled = render(node("{end_part_full}", history_end=[item]), [])
    assert "reference id: 77</tool_result>" in filled
    assert 7000 < filled.count("h") < 8100
    assert 1400 < filled.count("y") < 2100


def test_summary_without_a_template_shows_all_parts() -> None:
    filled = render(node(), [])
    for part in ("Lexer done.", "14 exchanges dropped", "wrote tests", "Two fail."):
        assert part in filled


@pytest.mark.parametrize("template", [None, "Now: {end_part_full}", "Now: {summary}"])
def test_results_beside_the_summary_become_a_further_exchange(template: Any) -> None:
    [text] = shown(
        result_node("e9", "30 passed"), summary_node(message_template=template)
    )
    beside = '<exchange><tool_result id="e9">30 passed</tool_result></exchange>'
    assert text.count(beside) == 1
    assert text.find(beside) > text.find("Two fail.")


def test_the_users_words_follow_the_summary() -> None:
    texts = shown(summary_node(message_template="S: {summary}"), text_node("Go.", 2))
    assert texts == ["S: Lexer done.", "Go."]


def test_the_summary_stands_where_its_node_stood() -> None:
    summary = {**summary_node(message_template="S: {summary}"), "id": 2}
    nodes = (text_node("Before.", 1), summary, text_node("After.", 3))
    assert shown(*nodes) == ["Before.", "S: Lexer done.", "After."]
    assert shown(*reversed(nodes)) == ["Before.", "S: Lexer done.", "After."]


def test_a_summary_that_says_nothing_leaves_no_empty_text() -> None:
    empty = summary_node(message_template="{summary}", summary_text="")
    assert shown(empty, image_node()) == []


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, [None, {"request_nodes": 5}]])
def test_summary_fields_of_a_wrong_type_are_ignored(odd: Any) -> None:
    names = node()
    for name in names:
        assert isinstance(render({**names, name: odd}, []), str)
