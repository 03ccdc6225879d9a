"""What the page makes of texts is what byok's commands make of them."""

import random

from playwright.async_api import Page

from byok.core.escapes import escape

_VISIBLE = """async (texts) => {
  const { visible } = await import("/ui/format.js");
  return texts.map(visible);
}"""
_JOINERS = "\u200c\u200d\ufe0e\ufe0f\u20e3"
_BESIDE = "a1é\u0628\u0915漢👍🏽❤☂©\u20e3 \t"
_HALVES = range(0xD800, 0xE000)  # they do not arrive in a browser


async def compare(page: Page, texts: list[str]) -> None:
    shown: list[str] = await page.evaluate(_VISIBLE, texts)
    expected = [escape(text) for text in texts]
    assert [
        pair for pair in zip(shown, expected, strict=True) if len({*pair}) > 1
    ] == []


async def test_every_character_is_shown_as_in_a_terminal(page: Page) -> None:
    numbers = [n for n in range(0x110000) if n not in _HALVES and chr(n) not in "\r\n"]
    rows = [numbers[start : start + 64] for start in range(0, len(numbers), 64)]
    await compare(page, [f"a{''.join(map(chr, row))}z" for row in rows])


async def test_joiners_are_shown_as_in_a_terminal(page: Page) -> None:
    source = random.Random(7)
    letters = _JOINERS * 2 + _BESIDE
    await compare(page, ["".join(source.choices(letters, k=5)) for _ in range(5000)])


async def test_lines_stay_lines(page: Page) -> None:
    assert await page.evaluate(_VISIBLE, ["a\n\tb\rc"]) == ["a\n\tb\\x0dc"]


async def test_durations_in_both_languages(page: Page) -> None:
    """No unit has more than it holds, whatever is rounded, nor a line of its own."""
    script = """async (all) => {
      const { duration } = await import("/ui/format.js");
      return all.map((one) => duration(one).replaceAll("\\u00a0", "_"));
    }"""
    seconds = [
        None,
        0,
        0.0004,
        0.9994,
        0.9996,
        59.94,
        59.96,
        119.7,
        3599.6,
        12_000,
        370_000,
    ]
    assert await page.evaluate(script, seconds) == [
        *("–", "0_ms", "0_ms", "999_ms", "1_s", "59.9_s", "1_min_0_s", "2_min_0_s"),
        *("1_h_0_min", "3_h_20_min", "4_d_6_h"),
    ]
    await page.evaluate("localStorage.setItem('byok-language', 'zh')")
    assert await page.evaluate(script, [0.5, 3.25, 65, 12_000]) == [
        *("500_毫秒", "3.3_秒", "1_分_5_秒", "3_小时_20_分")
    ]
