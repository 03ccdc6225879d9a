"""The fields of the documents in the index by tantivy, and those that came later.

An index whose fields differ cannot be opened. But a field may be appended to the list
in `meta.json`: documents without it stay as they are, are found as before, and are
merged with those that have it (tests hold tantivy to this). So an update of byok keeps
the index, which answers while its documents are replaced one by one.

Such a field must have no norms, which only text has: a merge would miss them.
"""

from collections.abc import Mapping
from pathlib import Path

import orjson
import tantivy
from tantivy import Occur, Query

from byok.platform.paths import write_private

# Weights of the text fields, measured together with the ranking (docs/RETRIEVAL.md).
TEXT_FIELDS = (("body", 1.0), ("sym", 0.3), ("path", 0.5))
MARKS = "marks"  # since index version 3
_FIRST_FIELDS = ["blob_id", "ordinal", *(name for name, _ in TEXT_FIELDS)]
_MARKS_FIELD = {
    "name": MARKS,
    "type": "bytes",
    "options": {"indexed": True, "fieldnorms": False, "fast": False, "stored": False},
}


def make_schema() -> tantivy.Schema:
    """Return the fields that documents have now."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("blob_id", indexed=True, fast=True)
    builder.add_integer_field("ordinal", fast=True)
    for name, _ in TEXT_FIELDS:
        builder.add_text_field(
            name, stored=False, tokenizer_name="whitespace", index_option="freq"
        )
    builder.add_bytes_field(MARKS, stored=False, indexed=True, fast=False)
    return builder.build()


def words_query(schema: tantivy.Schema, terms: Mapping[str, float]) -> Query:
    """Return a query for any of some weighted terms, in every field of text."""
    return Query.boolean_query(
        [
            (
                Occur.Should,
                Query.boost_query(
                    Query.term_query(schema, field, term), weight * boost
                ),
            )
            for term, weight in terms.items()
            for field, boost in TEXT_FIELDS
        ]
    )


def marks_query(schema: tantivy.Schema, marks: Mapping[str, float]) -> Query:
    """Return a query for any of some marks; the highest weight is the score."""
    return Query.disjunction_max_query(
        [
            Query.const_score_query(
                Query.term_query(schema, MARKS, mark.encode()), weight
            )
            for mark, weight in marks.items()
        ]
    )


def lacks_fields(folder: Path) -> bool:
    """Tell whether the index in a folder has the first fields only."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [field["name"] for field in meta["schema"]] == _FIRST_FIELDS
    except (OSError, ValueError, KeyError, TypeError):
        return False  # there is none, or opening it says what it is


def append_fields(folder: Path) -> None:
    """Append the missing fields; the caller holds the writer's lock.

    Raises:
        ValueError: the file could not be written, and stays as it was.
    """
    if not lacks_fields(folder):
        return
    place = folder / "meta.json"
    try:
        meta = orjson.loads(place.read_bytes())
        meta["schema"].append(_MARKS_FIELD)
        write_private(place, orjson.dumps(meta).decode())
    except OSError as error:
        raise ValueError(f"meta.json was not written: {error}") from error
