"""The table of prompts agrees with the files that are shipped."""

from byok.core.prompts.kinds import KINDS
from byok.core.prompts.own_files import check_name, read_prompt
from byok.core.prompts.prompt_set import shipped_texts
from byok.core.prompts.template import Template


def test_every_prompt_is_shipped_and_every_file_is_a_prompt() -> None:
    names = {name.partition(".")[0] for name in shipped_texts()}
    assert names == set(KINDS)
    assert [name for name in shipped_texts() if check_name(name)] == []


def test_shipped_prompts_name_only_what_they_may() -> None:
    for name, text in shipped_texts().items():
        assert isinstance(read_prompt(name, text), Template), name
