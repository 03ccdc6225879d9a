"""The settings files of clients: settings that point them at byok, set and removed.

The editors know no client; byok changes its own settings file with them, too.
"""
