"""
An executor that hands messages over directly.

rclpy makes a new wait set for every wait, with every service, timer and event of the node in it,
and wakes itself once more after every callback: for a small message that costs more than all the
rest. Here one wait set is kept for as long as the entities are the same, and messages go straight
to their callbacks. Everything else goes rclpy's own way, and all of it does where rclpy has not
the inner names that this needs.
"""

from contextlib import ExitStack
from inspect import iscoroutinefunction
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.subscription import Subscription

FOREVER_NS = -1
# Of one subscription before the next has its turn.
MOST_IN_A_ROW = 16
# Whoever waits for a service waits for so many rounds of messages at most.
ROUNDS_WITHOUT_OTHERS = 10
# What a wait set is made of, in the order of its arguments.
KINDS = ('subscription', 'guard_condition', 'timer', 'client', 'service', 'event')
# What is no message and stays ready until it has been dealt with, as the wait set names it.
PATIENT = ('timer', 'client', 'service')


class MessageFirstExecutor(SingleThreadedExecutor):
    """Runs callbacks one after the other in the thread that spins, messages at least cost."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._held: _Held | None = None
        self._knows_rclpy = True

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """
        Wait for work and do it.

        :param timeout_sec: longest time to wait in s; None: without end
        :raises ExternalShutdownException: if the context was shut down
        """
        if timeout_sec is None and self._knows_rclpy and self._only_messages():
            return
        self._release()
        if not self.context.ok():
            raise ExternalShutdownException()
        if timeout_sec is None and self._knows_rclpy:
            timeout_sec = 0.0  # something is ready
        super().spin_once(timeout_sec)

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """
        Stop; see rclpy's Executor.

        :param timeout_sec: longest time to wait for callbacks in s
        :returns: whether all have ended
        """
        self._release()
        return super().shutdown(timeout_sec)

    def _only_messages(self) -> bool:
        """Wait, and take messages; False if something else wants to be done."""
        try:
            if self._held is None:
                if not self.context.ok():
                    return False
                self._held = _Held(self)
            held = self._held
            ready = held.wait()
        except InvalidHandle:
            # Something was destroyed in the meantime.
            return False
        except (AttributeError, TypeError):
            # Another rclpy, with other inner names: slower, and right.
            self._knows_rclpy = False
            return False
        n_messages = sum([inbox.take() for inbox in ready])
        return not held.has_others(n_messages)

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class _Held:
    """The entities of all nodes of an executor, kept from being destroyed, and their wait set."""

    def __init__(self, executor: SingleThreadedExecutor) -> None:
        nodes = executor.get_nodes()
        self._waitables = [w for node in nodes for w in node.waitables]
        kinds = {
            kind: [entity for node in nodes for entity in getattr(node, f'{kind}s')]
            for kind in ('subscription', 'guard', 'timer', 'client', 'service')
        }
        kinds['guard_condition'] = [*kinds.pop('guard'), executor._guard, executor._sigint_gc]
        entities = [(kind, entity) for kind, each in kinds.items() for entity in each]
        with ExitStack() as stack:
            for _, entity in entities:
                stack.enter_context(entity.handle)
            for waitable in self._waitables:
                stack.enter_context(waitable)
            stack.enter_context(executor.context.handle)
            sizes = [
                len(kinds.get(kind, ()))
                + sum(getattr(w.get_num_entities(), f'num_{kind}s') for w in self._waitables)
                for kind in KINDS
            ]
            wait_set = rclpy_implementation.WaitSet(*sizes, executor.context.handle)
            self._wait_set = wait_set
            self._to_add = [
                (getattr(wait_set, f'add_{kind}'), entity.handle) for kind, entity in entities
            ]
            self._inboxes = {
                s.handle.pointer: _Inbox(s)
                for s in kinds['subscription']
                if not iscoroutinefunction(s.callback)
            }
            # From here on, they are given back by close.
            self._stack = stack.pop_all()
        self._rounds = 0

    def wait(self) -> list['_Inbox']:
        """Wait for anything, and give the subscriptions that have messages."""
        wait_set = self._wait_set
        wait_set.clear_entities()
        for add, handle in self._to_add:
            add(handle)
        for waitable in self._waitables:
            waitable.add_to_wait_set(wait_set)
        wait_set.wait(FOREVER_NS)
        pointers = wait_set.get_ready_entities('subscription')
        return [self._inboxes[p] for p in pointers if p in self._inboxes]

    def has_others(self, n_messages: int) -> bool:
        """
        Tell whether anything else is ready; to be asked after each wait.

        :param n_messages: how many were taken; if any, others may have to wait for some rounds,
            since to ask for all of them takes longer than to take a message
        """
        wait_set = self._wait_set
        # A guard condition is not ready a second time.
        if wait_set.get_ready_entities('guard_condition'):
            return True
        self._rounds += 1
        if n_messages and self._rounds < ROUNDS_WITHOUT_OTHERS:
            return False
        self._rounds = 0
        return (
            any([wait_set.get_ready_entities(kind) for kind in PATIENT])
            or any([waitable.is_ready(wait_set) for waitable in self._waitables])
            or not self._inboxes.keys() >= set(wait_set.get_ready_entities('subscription'))
        )

    def close(self) -> None:
        self._stack.close()


class _Inbox:
    """A subscription whose callback takes messages, maybe with what came with them."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._handle = subscription.handle
        self._take = self._handle.take_message
        self._kind = subscription.msg_type, subscription.raw
        # rclpy of Humble has no such types of callbacks: all take the message alone.
        kinds = getattr(Subscription, 'CallbackType', None)
        self._alone = kinds is None or subscription._callback_type is kinds.MessageOnly

    def take(self) -> int:
        """Hand over what has come, and tell how much it was."""
        for count in range(MOST_IN_A_ROW):
            try:
                with self._handle:
                    taken = self._take(*self._kind)
            except InvalidHandle:
                # Destroyed by the callback of the message before.
                return count
            if taken is None:
                return count
            self._subscription.callback(*taken[: 1 if self._alone else 2])
        return MOST_IN_A_ROW
