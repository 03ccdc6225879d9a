"""The settings files of clients: what points them at byok, put in and taken out."""
