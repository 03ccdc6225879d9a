"""What models are asked for."""

from byok.core.purposes import Purpose


def test_purposes_that_write_code_or_chat_need_a_large_model() -> None:
    large = {purpose for purpose in Purpose if not purpose.is_small}
    assert large == {Purpose.CHAT, Purpose.COMPLETION, Purpose.EDIT}
