"""Where a selection stands in its file."""

from typing import Any

import pytest

from byok.core.errors import BadRequest
from byok.protocols.augment.positions import INSERTION
from byok.protocols.augment.prompts.edit import (
    cut_file,
    selection_region,
)

FILE = "".join(f"line {n}\r\n" for n in range(1, 21))
BODY: dict[str, Any] = {
    "prefix": "line 9\nline 10\n",
    "selected_text": "line 11\n",
    "suffix": "line 12\n",
    "prefix_begin": 77,
}


def test_edit_region_finds_a_cut_prefix_in_the_file() -> None:
    found = selection_region({**BODY, "target_file_content": FILE})
    assert (found.start, found.end) == (11, 11)


def test_edit_region_finds_a_selection_whose_surroundings_changed() -> None:
    body = {**BODY, "prefix": "line 9!\n", "target_file_content": FILE}
    assert selection_region(body).start == 11


def test_edit_region_of_an_insertion_in_a_cut_file_names_the_line_before() -> None:
    body = {**BODY, "selected_text": "", "suffix": "line 11\n"}
    found = selection_region({**body, "target_file_content": FILE})
    assert (found.start, found.end) == (11, 11)
    assert found.shown == f"{INSERTION}line 10"


@pytest.mark.parametrize("file", [None, "other", 7])
def test_edit_region_does_not_invent_line_numbers(file: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        selection_region({**BODY, "target_file_content": file})
    assert (caught.value.status, caught.value.code) == (422, "file_start_unknown")


def test_edit_region_wants_the_file_where_its_beginning_is_missing() -> None:
    assert cut_file({**BODY, "blob_name": "b"}) == "b"
    assert cut_file({**BODY, "blob_name": None}) == ""
    assert cut_file({**BODY, "blob_name": "b", "prefix_begin": 0}) == ""
    assert cut_file({**BODY, "blob_name": "b", "target_file_content": ""}) == ""
