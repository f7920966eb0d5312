"""Which joints come from more than one publisher: what no stamp and no value would show."""

from dataclasses import dataclass
from dataclasses import field

# One step back of a publisher's own numbers is a publisher that was restarted.
FEWEST_STEPS_BACK = 2
# Long enough for a publisher of a few messages a second to be noticed.
REPORTS_KEPT = 10
MOST_GROUPS = 64


@dataclass
class _Group:
    """Lists of names that share joints."""

    joints: set[str]
    lists: set[tuple[str, ...]] = field(default_factory=set)
    last_number: int | None = None
    steps_back: int = 0


class PublisherWatch:
    """
    Tells publishers apart by the numbers that they give to their messages.

    The numbers of one publisher rise from message to message; those of two that send the same
    joints do not. Where the middleware tells no numbers, different lists of names that share a
    joint are taken as two publishers.
    """

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._group_of: dict[tuple[str, ...], _Group] = {}
        self._n_reports = 0

    def note(self, names: tuple[str, ...], number: int | None) -> None:
        """
        Take note of one message.

        :param names: its joints
        :param number: its number, as the publisher counts; None if unknown
        """
        group = self._group_of.get(names) or self._enter(names)
        if number is None:
            return
        if group.last_number is not None and number <= group.last_number:
            group.steps_back += 1
        group.last_number = number

    def shared_joints(self) -> list[str]:
        """
        Find the joints that more than one publisher has sent lately, to be asked once a report.

        :returns: their names, sorted
        """
        shared = set().union(*(group.joints for group in self._groups if _is_shared(group)))
        self._n_reports += 1
        if self._n_reports >= REPORTS_KEPT:
            self.__init__()
        return sorted(shared)

    def _enter(self, names: tuple[str, ...]) -> _Group:
        if len(self._group_of) >= MOST_GROUPS:
            self.__init__()
        group = _Group(set(names))
        for other in [g for g in self._groups if g.joints & group.joints]:
            self._groups.remove(other)
            group.joints |= other.joints
            group.lists |= other.lists
            group.steps_back += other.steps_back
        group.lists.add(names)
        self._groups.append(group)
        for each in group.lists:
            self._group_of[each] = group
        return group


def _is_shared(group: _Group) -> bool:
    if group.last_number is None:
        return len(group.lists) > 1
    return group.steps_back >= FEWEST_STEPS_BACK
