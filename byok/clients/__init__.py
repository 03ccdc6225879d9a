"""The settings files of clients: add and remove the settings that point them at byok.

The text editors know no client; byok edits its own settings file with them, too.
"""
