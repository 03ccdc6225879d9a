"""Files become chunks and terms, in processes of their own."""
