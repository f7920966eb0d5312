"""How a rule says that a message is not used, or not yet."""


class Dropped(Exception):
    """
    A message is left out; memory stays as it was.

    Raised by the rules and caught by :meth:`seqmem_ros.core.stream.Stream.push` alone.

    :param key: name of the counter, ``drop_*``
    :param sentence: what was expected and what came
    """

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


class Waiting(Exception):
    """A message is kept until the joints that it lacks have come; memory stays as it was."""
