"""Prompt texts: slots, conditions, and what is said of wrong ones."""

import pytest

from byok.core.prompts.template import TemplateError, parse_template
from tests.fakes.clock import check_linear


def render(text: str, true: str = "", **values: str) -> str:
    return parse_template(text).render(values, lambda name: name in true.split())


@pytest.mark.parametrize(
    ("text", "values", "rendered"),
    [
        ("You are {{name}}.", {"name": "byok"}, "You are byok."),
        ("One.\n\n{{rules}}\n\nTwo.", {}, "One.\n\nTwo."),
        (
            "One.\n\n{{rules}}\n\nTwo.",
            {"rules": "R\n\n\nS"},
            "One.\n\nR\n\n\nS\n\nTwo.",
        ),
        ("{{a}}{{b}}", {"a": "{{b}}", "b": "2"}, "{{b}}2"),
        ("{{a}}", {"a": "{{#x}}"}, "{{#x}}"),
        ("<!-- why\nso -->\n\nText", {}, "Text"),
        ("a { b } {c} }}", {}, "a { b } {c} }}"),
    ],
)
def test_slots_take_values_which_are_never_read_again(
    text: str, values: dict[str, str], rendered: str
) -> None:
    assert render(text, **values) == rendered


@pytest.mark.parametrize(
    ("true", "rendered"),
    [
        ("", "Begin.\n\nNo tools.\n\nEnd."),
        ("tool:view", "Begin.\n\nLook with `view`.\n\nEnd."),
        ("tool:view agent", "Begin.\n\nLook with `view`. Then act.\n\nEnd."),
    ],
)
def test_sections_are_used_where_their_condition_holds(
    true: str, rendered: str
) -> None:
    text = (
        "Begin.\n\n{{#tool:view}}\nLook with `view`.{{#agent}} Then act.{{/agent}}\n"
        "{{/tool:view}}\n{{^tool:view}}\nNo tools.\n{{/}}\n\nEnd.\n"
    )
    assert render(text, true) == rendered


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("One\n{{#agent}}\nTwo", 2, "agent is not closed"),
        ("One\n\nTwo {{/agent}}", 3, "{{/agent}} closes nothing"),
        ("{{#a}}\n{{/b}}", 2, "{{/b}} closes nothing"),
        ("One {{ two\n", 1, "{{ is not closed"),
        ("One {{two}}\nthree {{", 2, "{{ is not closed"),
        ("{{Rules!}}", 1, "'Rules!' is no name"),
        ("{{}}", 1, "'' is no name"),
        ("{{#a}}" * 9, 1, "too many sections in one another"),
    ],
)
def test_a_wrong_text_is_refused_with_its_line_and_a_cure(
    text: str, line: int, problem: str
) -> None:
    with pytest.raises(TemplateError) as raised:
        parse_template(text)
    assert (raised.value.line, raised.value.problem) == (line, problem)
    assert raised.value.cure.endswith(".")


@pytest.mark.parametrize(
    "piece",
    ["{{a}}", "{{#a}}\n{{/}}\n", "{{", "{{a\n", "<!--x-->", " ", "\n"],
)
def test_a_hostile_text_takes_linear_time(piece: str) -> None:
    def work(size: int) -> None:
        try:
            template = parse_template(piece * (size // len(piece)))
        except TemplateError:
            return
        template.render({"a": "x"}, lambda _: True)
        assert not template.has("none")

    check_linear(work, 40_000)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{a}}\n\nx", "x"),
        ("x\n  {{a}}  \ny", "x\ny"),
        ("x\n  {{^b}} \n  - z\n  {{/}}\ny", "x\n  - z\ny"),
        ("x\n{{a}}{{a}}\ny", "x\n\ny"),
        ("{{^b}}\n{{a}}\n{{/}}\nx", "x"),
        ("x {{a}}\ny", "x \ny"),
        ("<!-- c -->\n{{a}}\nx", "x"),
        ("x\n{{^b}}{{a}}\ny{{/}}", "x\n\ny"),
    ],
)
def test_only_a_mark_alone_on_its_line_takes_the_line_with_it(
    text: str, rendered: str
) -> None:
    assert render(text) == rendered
