"""The tables of the journal, its version, and the steps from older versions.

Readers of a file that its writer has not yet upgraded to the newest version see the new
columns with their defaults.
"""

import sqlite3
from contextlib import closing

from byok.storage.kind import DatabaseKind, Policy, sql_step

# Requests that people are interested in: questions to models, and unsuccessful ones.
ASKED = "(purpose <> '' OR model <> '' OR outcome <> 'ok')"
# A client without its version, as SQL.
FAMILY = "substr(client, 1, instr(client || '/', '/') - 1)"
# The full name of a model, as in lists and settings, as SQL.
MODEL_NAME = "'byok:' || upstream || ':' || model"
# Requests with any repair. The index has the rows of exactly this condition, so queries
# must use the same text.
MENDED = (
    "(repairs > 0 OR dropped_calls > 0 OR notices > 0 OR loop <> '' OR attempts > 1)"
)
_INDEXES_2 = (
    "CREATE INDEX request_failed ON request (started, error, upstream, model) "
    "WHERE outcome = 'failed'",
    "CREATE INDEX request_mended ON request (started) WHERE (repairs > 0 "
    "OR dropped_calls > 0 OR notices > 0 OR loop <> '' OR attempts > 1)",
    "CREATE INDEX request_model ON request (upstream, model, started) "
    "WHERE model <> ''",
)
_TABLES = """CREATE TABLE request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    started REAL NOT NULL,
    seconds REAL NOT NULL,
    client TEXT NOT NULL,
    conversation TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    purpose TEXT NOT NULL,
    model_asked TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_byte REAL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_written_tokens INTEGER,
    cost REAL,
    repairs INTEGER NOT NULL,
    dropped_calls INTEGER NOT NULL,
    notices INTEGER NOT NULL,
    prompt TEXT NOT NULL,
    status INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT NOT NULL,
    error_class TEXT NOT NULL,
    tool_calls TEXT NOT NULL DEFAULT '',
    loop TEXT NOT NULL DEFAULT '',
    prompt_change TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL DEFAULT '',
    retried TEXT NOT NULL DEFAULT ''
);
CREATE INDEX request_started ON request (started);
CREATE INDEX request_conversation ON request (conversation, started)
    WHERE conversation <> ''"""

JOURNAL = DatabaseKind(
    ";".join((_TABLES, *_INDEXES_2)),
    version=4,
    policy=Policy.HELP,
    pragmas=(
        "busy_timeout = 2000",
        "synchronous = NORMAL",
        "cache_size = -500",
        "journal_size_limit = 4194304",
    ),
    steps=(
        sql_step(
            2,
            "ALTER TABLE request ADD COLUMN tool_calls TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE request ADD COLUMN loop TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE request ADD COLUMN prompt_change TEXT NOT NULL DEFAULT ''",
            *_INDEXES_2,
        ),
        sql_step(3, "ALTER TABLE request ADD COLUMN folder TEXT NOT NULL DEFAULT ''"),
        sql_step(4, "ALTER TABLE request ADD COLUMN retried TEXT NOT NULL DEFAULT ''"),
    ),
    application=0x62796F6B,
    shrinks=True,
)


def show_requests(
    db: sqlite3.Connection, version: int, hint: str = "", where: str = "1"
) -> None:
    """Create a temporary view of the requests with the columns of this version.

    `hint` and `where` are SQL for the selection from the file.

    Raises:
        sqlite3.DatabaseError: it cannot be read.
    """
    added = list[str]()
    if version < JOURNAL.version:
        with closing(sqlite3.connect(":memory:")) as new:
            JOURNAL.create_tables(new)
            present = _defaults(db)
            added = [
                f"{default} AS {name}"
                for name, default in _defaults(new).items()
                if name not in present
            ]
    columns = ", ".join(("*", *added))
    # SQLite looks for a name among temporary views first, which are not in the file.
    source = f"SELECT {columns} FROM main.request {hint}"  # noqa: S608 - our own words
    db.execute(f"CREATE TEMP VIEW request AS SELECT * FROM ({source}) WHERE {where}")  # noqa: S608


def _defaults(db: sqlite3.Connection) -> dict[str, str]:
    """Return the columns, each with the SQL of its default."""
    columns = "SELECT name, dflt_value FROM pragma_table_info('request', 'main')"
    return dict(db.execute(columns))
