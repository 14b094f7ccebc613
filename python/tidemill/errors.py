"""Exceptions. Each has the library's sentence: the numbers that disagree, and what to do."""


class Error(Exception):
    """A call failed."""


class NoVulkanError(Error):
    """There is no Vulkan loader or no driver."""


class NoDeviceError(Error):
    """No device can be used, or the one that was asked for is not there."""


class LayerMissingError(Error):
    """Validation was asked for, and its layer is not installed."""


class CacheFolderError(Error):
    """The folder for the cache can't be used."""


class VulkanError(Error):
    """A call of Vulkan failed."""


class DeviceLostError(Error):
    """The device is lost, and its tensors with it. A new accelerator may work."""


class ClosedError(Error):
    """What is used has ended: an accelerator that was closed, a recording that was submitted."""


class StillInUseError(Error):
    """The accelerator was closed, and something on it is still there."""


class ForkedError(Error):
    """This process was forked after the first use."""


class CancelledError(Error):
    """The call was ended by its progress function."""


class HostError(Error):
    """What the program shares with the library does not fit."""


class OutOfMemoryError(Error, MemoryError):
    """There is no more memory, or the pool is at its cap."""


class TooLargeError(Error, ValueError):
    """A tensor, or a part of it that one binding must span, is larger than the device takes."""


class ShapeError(Error, ValueError):
    """Shapes, axes or ranges disagree."""


class DTypeError(Error, TypeError):
    """An element type is none of tensors, or not the one that is needed here."""


class ParameterError(Error, ValueError):
    """An argument is outside of its rule."""


class NoContentsError(Error):
    """A tensor is read that nothing has written yet."""


class BindingError(Error):
    """A tensor can't be bound to a plan in this way."""


class ForeignError(Error):
    """A value or a tensor belongs to another recording or accelerator."""


class KernelError(Error):
    """A kernel can't be made, or its arguments do not fit."""


class ProfileError(Error):
    """A profile can't be taken or read."""


class InternalError(Error):
    """A mistake in the library: an earlier call on this object failed half-way."""
