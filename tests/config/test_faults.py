"""Faults by setting."""

from byok.config.faults import InvalidSettings, SettingFault


def test_an_error_of_the_settings_knows_its_settings() -> None:
    fault = SettingFault(("chat", "top_p"), "too much")
    error = InvalidSettings("f: chat.top_p: too much.", (fault,), hint="Look.")
    assert (error.code, error.hint, error.faults) == ("config", "Look.", (fault,))
    assert InvalidSettings("f").faults == ()
