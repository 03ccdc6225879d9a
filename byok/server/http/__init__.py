"""HTTP: sockets, limits, access checks, bodies, streams, errors."""
