"""The parts of a report about one request."""

from byok.doctor.request_report import write_parts
from byok.features.capture.capture import Capture, Piece, decode_capture
from byok.record import Hop
from tests.fakes.doctors import surroundings

CAPTURE = Capture(
    {"id": "a" * 16, "upstream": "box", "model": "m", "byok": "1.2"},
    (Piece(0.0, Hop.FROM_CLIENT, text='{"message": "My words."}'),),
)


async def test_parts_hold_no_words_unless_they_are_wanted() -> None:
    async with surroundings() as around:
        hidden = await write_parts(CAPTURE, around, with_content=False)
        shown = await write_parts(CAPTURE, around, with_content=True)
    assert [*hidden] == ["README.txt", "capture.jsonl", "model.json"]
    assert "byok 1.2" in str(hidden["README.txt"])
    assert b"My words." not in bytes(hidden["capture.jsonl"])  # type: ignore[arg-type]
    assert decode_capture(bytes(shown["capture.jsonl"])) == CAPTURE  # type: ignore[arg-type]
    assert "--with-content" in str(shown["README.txt"])
    assert hidden["model.json"] == b"{}"
