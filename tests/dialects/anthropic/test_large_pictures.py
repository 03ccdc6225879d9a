"""A picture is known by its bytes, so that it is replaced in later requests, too."""

from byok.chat import ImagePart
from byok.dialects.anthropic.large_pictures import large_picture_row
from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import RefusedRequest, Remedy
from tests.fakes.histories import PNG
from tests.fakes.messages_api import assistant, encode, user

SMALL = ImagePart("image/png", "AAAA")
TOO_LARGE = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"


def test_only_the_same_picture_is_replaced_wherever_it_is() -> None:
    row = large_picture_row()
    body = encode(user("?", PNG, "b", SMALL)).body
    error = refusal_of({"error": {"message": TOO_LARGE}}, 400)
    found = row.find(RefusedRequest(body, error))
    assert found and row.make
    later = encode(user("?", SMALL, "b", PNG), assistant("Yes."), user("!")).body
    changed = row.make(later, Remedy("large picture", *found))
    kinds = [block["type"] for block in changed["messages"][0]["content"]]
    assert kinds == ["text", "image", "text", "text"]


def test_other_refusals_are_none_of_its_business() -> None:
    error = refusal_of({"error": {"message": "overloaded"}}, 529)
    refused = RefusedRequest(encode(user("?", PNG)).body, error)
    assert large_picture_row().find(refused) is None
