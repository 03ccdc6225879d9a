"""The settings files of clients: settings that point them at byok, set and removed."""
