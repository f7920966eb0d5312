"""Where compiled programs run: in the thread that calls them, or in one of JAX's own."""


def compute_in_caller() -> None:
    """
    Let programs run in the thread that calls them, in this whole process.

    JAX hands them to a thread of its own and goes on, which serves programs that take long. One
    that takes 20 us is done before that thread has woken up; on a busy machine waiting for it
    takes milliseconds. Has an effect only before the first computation of the process.
    """
    import jax

    try:
        jax.config.update('jax_cpu_enable_async_dispatch', False)
    except AttributeError:
        # Without the option there is nothing to choose.
        pass
