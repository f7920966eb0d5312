"""Joints are matched by name; this is where a name gets its row."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.dropped import Dropped

# More different name lists than this on one topic means that they are not from a few
# publishers; forgetting them costs a look-up, remembering them all would cost memory.
MAX_REMEMBERED_LISTS = 64
# A humanoid with two hands has about a hundred; a publisher that makes up names must not fill
# the memory, nor slow every step by rows that nobody needs.
MOST_JOINTS = 256

# A sentence for people does not grow with the message.
MOST_LISTED = 16
LONGEST_NAME = 80


class JointMap:
    """
    Rows for joint names: given in advance, or in the order in which joints first appear.

    :param joints: the joints of the model, one row each in this order; empty: any joint
    :param wanted: joints to estimate where ``joints`` is empty; empty: all
    :param partial: whether a message may carry only some of ``joints``
    """

    def __init__(
        self, joints: Sequence[str] = (), wanted: Sequence[str] = (), partial: bool = False
    ) -> None:
        self._partial = partial
        self._required = tuple(joints)
        self._wanted = frozenset(wanted)
        self._row_of: dict[str, int] = {name: row for row, name in enumerate(joints)}
        self._remembered: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def names(self) -> tuple[str, ...]:
        """Joints that have a row, in the order of the rows."""
        return tuple(self._row_of)

    def rows(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """
        Find the rows of a message's joints.

        :param names: joint names of the message
        :returns: indices into the message, and the rows that they belong to, both shape (n,)
        :raises Dropped: if a name stands twice, if none is known, if the model lacks one, or if
            there have been too many different ones
        """
        found = self._remembered.get(names)
        if found is None:
            found = self._look_up(names)
            if len(self._remembered) >= MAX_REMEMBERED_LISTS:
                self._remembered.clear()
            self._remembered[names] = found
        return found

    def set_partial(self, partial: bool) -> None:
        """
        Change whether a message may carry only some of a model's joints.

        :param partial: whether it may
        """
        self._partial = partial
        self._remembered.clear()

    def forget_from(self, n_joints: int) -> None:
        """
        Take back the rows of joints that came last.

        :param n_joints: number of joints to keep
        """
        self._row_of = {name: row for name, row in self._row_of.items() if row < n_joints}
        self._remembered.clear()

    def _look_up(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        if len(set(names)) < len(names):
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            raise Dropped(
                'drop_duplicate_names', f'expected each joint once, got twice: {listed(twice)}'
            )
        if self._required:
            return self._rows_of_the_model(names)
        columns = [i for i, name in enumerate(names) if not self._wanted or name in self._wanted]
        if not columns:
            raise Dropped(
                'drop_no_known_joint',
                f'expected some of the joints {listed(sorted(self._wanted))}, got {listed(names)}',
            )
        new = [names[i] for i in columns if names[i] not in self._row_of]
        if len(self._row_of) + len(new) > MOST_JOINTS:
            raise Dropped(
                'drop_too_many_joints',
                f'expected at most {MOST_JOINTS} different joints, got {len(new)} new ones after '
                f'{len(self._row_of)}; name those to use in the parameter joints',
            )
        rows = [self._row_of.setdefault(names[i], len(self._row_of)) for i in columns]
        return np.array(columns), np.array(rows)

    def _rows_of_the_model(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        column_of = {name: column for column, name in enumerate(names)}
        present = [row for row, name in enumerate(self._required) if name in column_of]
        if not present or (len(present) < len(self._required) and not self._partial):
            missing = [name for name in self._required if name not in column_of]
            raise missing_joints(self._required, missing)
        columns = [column_of[self._required[row]] for row in present]
        return np.array(columns), np.array(present)


def missing_joints(required: Sequence[str], missing: Sequence[str]) -> Dropped:
    """
    Say which joints a model lacks.

    :param required: joints of the model
    :param missing: those of them that have no value
    :returns: the refusal, to be raised
    """
    return Dropped(
        'drop_missing_joint',
        f'expected {len(required)} joints {listed(required)}, missing {listed(missing)}',
    )


def listed(names: Sequence[str]) -> str:
    """
    Name joints in a sentence, which stays one line of bounded length whatever they are called.

    :param names: names as they came in a message
    :returns: the first of them, and how many there are more
    """
    shown = ', '.join(' '.join(name[:LONGEST_NAME].split()) for name in names[:MOST_LISTED])
    more = len(names) - MOST_LISTED
    return f'{shown} and {more} more' if more > 0 else shown or 'none'
