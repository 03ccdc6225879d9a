"""HTTP itself: sockets, limits, who may ask, bodies, streams, errors."""
