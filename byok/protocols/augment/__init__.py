"""The clients' HTTP protocol: request bodies in, reply chunks out."""
