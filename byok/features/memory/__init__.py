"""Earlier conversations of the editor, kept on this machine and found again."""
