"""What the dashboard needs besides HTTP: sessions, facts, and the page's files."""
