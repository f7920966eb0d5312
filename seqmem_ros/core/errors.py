"""The one error of this package that a person in front of it can put right."""


class SeqmemError(ValueError):
    """
    A fault in what the user gave: a file, a name, a value, a recording.

    Its text is one sentence that says what was expected, what came and what to do. The command
    line and the node print it and stop; no other error is caught there.
    """
