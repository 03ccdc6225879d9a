"""One life cycle for byok's SQLite files: open, check, migrate, set aside, close."""
