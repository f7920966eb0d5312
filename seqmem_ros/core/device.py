"""Where networks run."""

from seqmem_ros.core.errors import SeqmemError


def use_device(device: str) -> None:
    """
    Let jax run on one kind of device, whatever else it could find.

    :param device: ``cpu``, ``gpu`` or ``tpu``
    :raises SeqmemError: if the jax that is installed has no such device
    """
    import jax

    # Not by the environment, which jax has read when it was imported.
    jax.config.update('jax_platforms', device)
    try:
        jax.devices()
    except RuntimeError as error:
        raise SeqmemError(
            f"parameter device: expected a device that jax has, got '{device}' ({error}); set it "
            "to 'cpu', or install jax for that device"
        ) from error
