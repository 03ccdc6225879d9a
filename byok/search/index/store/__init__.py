"""The index on disk: SQLite rows and tantivy documents."""
