"""Tidemill, a low-level Vulkan compute engine: the page docs/python.md has an introduction.

    import numpy as np
    import tidemill

    gpu = tidemill.Accelerator.shared()
    x = gpu.upload(np.arange(6, dtype=np.float32).reshape(2, 3))
    with gpu.recording() as r:
        y = r.keep(r.exp(r.of(x) * 0.5).T)
    print(y.numpy())
"""

from . import errors
from ._tidemill import (
    HAS_GLSL,
    Accelerator,
    InOut,
    Kernel,
    Output,
    Plan,
    Recording,
    Run,
    Session,
    Submission,
    Tensor,
    Value,
    __version__,
    devices,
    html_report,
)
from .errors import Error

__all__ = [
    "HAS_GLSL",
    "Accelerator",
    "Error",
    "InOut",
    "Kernel",
    "Output",
    "Plan",
    "Recording",
    "Run",
    "Session",
    "Submission",
    "Tensor",
    "Value",
    "__version__",
    "devices",
    "errors",
    "html_report",
]
