"""Earlier conversations of the editor, stored on this machine and searched."""
