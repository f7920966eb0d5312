"""How much to try: a part by default, all of it with SEQMEM_FUZZ=whole in the environment."""

import os

WHOLE = os.environ.get('SEQMEM_FUZZ') == 'whole'


def count(whole: int, part: int) -> int:
    return whole if WHOLE else part
