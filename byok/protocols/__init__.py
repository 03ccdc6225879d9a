"""What clients say and hear, without I/O: the editor's protocol and those of /v1."""
