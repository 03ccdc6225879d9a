"""An index as versions of byok wrote it before chunks had marks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import tantivy


def write_old_index(folder: Path, texts: Mapping[int, Sequence[str]]) -> None:
    """Write the chunks of blobs: several segments, some of them with deletions."""
    folder.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("blob_id", indexed=True, fast=True)
    builder.add_integer_field("ordinal", fast=True)
    for name in ("body", "sym", "path"):
        builder.add_text_field(
            name, stored=False, tokenizer_name="whitespace", index_option="freq"
        )
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(30_000_000, 1)
    for count, (blob_id, chunks) in enumerate(texts.items(), 1):
        for ordinal, text in enumerate(chunks):
            row = tantivy.Document()
            row.add_integer("blob_id", blob_id)
            row.add_integer("ordinal", ordinal)
            row.add_text("body", text)
            row.add_text("sym", f"s{blob_id}")
            row.add_text("path", "a")
            writer.add_document(row)
        if count % 20 == 0:
            writer.commit()
    writer.commit()
    writer.delete_documents_by_term("blob_id", 10**6)
    writer.commit()
    writer.wait_merging_threads()
