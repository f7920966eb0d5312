"""How a rule says that a message is not used."""


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
