"""Code search for any agent: the tools of MCP, and its transport over HTTP."""
