"""numpy, loaded so that its linear algebra uses a single thread.

The library below numpy starts a thread for each core, and they spin: a scan of 6 ms
then costs several times that in CPU, and chats wait. It reads its limit once, when it
is loaded, so the limit is set for that moment only. If numpy was loaded before, nothing
changes but speed.
"""

import os

_LIMITS = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "MKL_NUM_THREADS")
_before = {name: os.environ.get(name) for name in _LIMITS}
os.environ.update(dict.fromkeys(_LIMITS, "1"))
try:
    import numpy as np
finally:
    for _name, _value in _before.items():
        if _value is None:
            os.environ.pop(_name, None)
        else:
            os.environ[_name] = _value

__all__ = ["np"]
