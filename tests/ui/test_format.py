"""What the page makes of texts is what byok's commands make of them."""

import random

from playwright.async_api import Page, expect

from byok.core.escapes import escape
from tests.fakes.pages import set_look

_VISIBLE = """async (texts) => {
  const { visible } = await import("/ui/format.js");
  return texts.map(visible);
}"""
_DURATIONS = """async (all) => {
  const { duration } = await import("/ui/format.js");
  return all.map((one) => duration(one).replaceAll("\\u00a0", "_"));
}"""
_SHARES = """async (all) => {
  const { percent } = await import("/ui/format.js");
  return all.map(percent);
}"""
_JOINERS = "\u200c\u200d\ufe0e\ufe0f\u20e3"
_BESIDE = "a1é\u0628\u0915漢👍🏽❤☂©\u20e3 \t"
_HALVES = range(0xD800, 0xE000)  # they do not arrive in a browser


async def test_every_character_is_shown_as_in_a_terminal(page: Page) -> None:
    # Of planes without letters of an alphabet, some: they are all of the same kind.
    planes = [*range(0x20000), *range(0x20000, 0x110000, 31), *range(0xE0000, 0xE0200)]
    numbers = [n for n in planes if n not in _HALVES and chr(n) not in "\r\n"]
    rows = [numbers[start : start + 64] for start in range(0, len(numbers), 64)]
    texts = [f"a{''.join(map(chr, row))}z" for row in rows]
    source = random.Random(7)
    letters = _JOINERS * 2 + _BESIDE
    texts += ["".join(source.choices(letters, k=5)) for _ in range(5000)]
    visible: list[str] = await page.evaluate(_VISIBLE, texts)
    pairs = zip(visible, map(escape, texts), strict=True)
    assert [pair for pair in pairs if len({*pair}) > 1] == []
    lines = await page.evaluate(_VISIBLE, ["a\n\tb\rc"])  # which stay lines
    assert lines == ["a\n\tb\\x0dc"]


async def test_shares_of_about_the_same_size_have_as_many_digits(page: Page) -> None:
    shares = {0.9899: "99%", 0.9851: "99%", 0.1176: "12%", 0.0834: "8.3%"}
    assert await page.evaluate(_SHARES, [*shares]) == [*shares.values()]


async def test_durations_in_both_languages(page: Page) -> None:
    """No unit has more than it holds, whatever is rounded, nor a line of its own."""
    expected = {
        None: "–", 0: "0_ms", 0.0004: "0_ms", 0.9994: "999_ms", 0.9996: "1_s",
        59.94: "59.9_s", 59.96: "1_min_0_s", 119.7: "2_min_0_s", 3599.6: "1_h_0_min",
        12_000: "3_h_20_min", 370_000: "4_d_6_h",
    }  # fmt: skip
    assert await page.evaluate(_DURATIONS, [*expected]) == [*expected.values()]
    await set_look(page, "language", "zh")
    await expect(page.locator("html")).to_have_attribute("lang", "zh")
    assert await page.evaluate(_DURATIONS, [0.5, 3.25, 65, 12_000]) == [
        *("500_毫秒", "3.3_秒", "1_分_5_秒", "3_小时_20_分")
    ]
