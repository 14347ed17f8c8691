"""The type of a flat vector of parameters, for those who handle it without a network."""

import numpy as np
from numpy.typing import NDArray

#: All parameters of a network, in the order of `named_parameters()`.
Vector = NDArray[np.float32]
