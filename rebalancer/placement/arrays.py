"""Types of the dense per-node arrays: position i belongs to the i-th node by name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.uint8]
Domains: TypeAlias = NDArray[np.int32]
