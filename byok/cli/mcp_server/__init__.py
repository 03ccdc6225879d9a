"""byok as an MCP server over standard input and output."""
