"""The site of the documentation: `scripts/docs` builds it with MkDocs."""
