"""
An executor that hands messages over directly.

rclpy makes a new wait set for every wait, with every service, timer and event of the node in it,
and wakes itself once more after every callback: for a small message that costs more than all the
rest. Here one wait set is kept for as long as the entities are the same, and a wake-up for nothing
but messages goes straight to their callbacks. Everything else goes rclpy's own way, and all of it
does where rclpy has not the inner names that this needs.
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
# Kinds of entities that are no messages, as the wait set names them.
OTHERS = ('guard_condition', 'timer', 'client', 'service')


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
            ready, others = self._held.wait()
        except InvalidHandle:
            # Something was destroyed in the meantime.
            return False
        except (AttributeError, TypeError):
            # Another rclpy, with other inner names: slower, and right.
            self._knows_rclpy = False
            return False
        for subscription in ready:
            _take(subscription)
        return not others

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class _Held:
    """The entities of all nodes of an executor, kept from being destroyed, and their wait set."""

    def __init__(self, executor: SingleThreadedExecutor) -> None:
        nodes = executor.get_nodes()
        self._subscriptions = [s for node in nodes for s in node.subscriptions]
        self._waitables = [w for node in nodes for w in node.waitables]
        guards = [guard for node in nodes for guard in node.guards]
        guards += [executor._guard, executor._sigint_gc]
        timers = [timer for node in nodes for timer in node.timers]
        clients = [client for node in nodes for client in node.clients]
        services = [service for node in nodes for service in node.services]
        self._stack = ExitStack()
        try:
            for entity in (*self._subscriptions, *guards, *timers, *clients, *services):
                self._stack.enter_context(entity.handle)
            for waitable in self._waitables:
                self._stack.enter_context(waitable)
            self._stack.enter_context(executor.context.handle)
        except InvalidHandle:
            self._stack.close()
            raise
        sizes = [
            len(each) for each in (self._subscriptions, guards, timers, clients, services)
        ] + [0]
        for waitable in self._waitables:
            more = waitable.get_num_entities()
            for index, name in enumerate(
                ('subscriptions', 'guard_conditions', 'timers', 'clients', 'services', 'events')
            ):
                sizes[index] += getattr(more, f'num_{name}')
        self._wait_set = wait_set = rclpy_implementation.WaitSet(*sizes, executor.context.handle)
        self._to_add = [
            (add, entity.handle)
            for add, entities in (
                (wait_set.add_subscription, self._subscriptions),
                (wait_set.add_guard_condition, guards),
                (wait_set.add_timer, timers),
                (wait_set.add_client, clients),
                (wait_set.add_service, services),
            )
            for entity in entities
        ]
        self._pointers = [s.handle.pointer for s in self._subscriptions]
        self._is_direct = [not iscoroutinefunction(s.callback) for s in self._subscriptions]

    def wait(self) -> tuple[list[Subscription], bool]:
        """Give subscriptions with messages, and whether anything else is ready."""
        wait_set = self._wait_set
        wait_set.clear_entities()
        for add, handle in self._to_add:
            add(handle)
        for waitable in self._waitables:
            waitable.add_to_wait_set(wait_set)
        wait_set.wait(FOREVER_NS)
        others = any([wait_set.get_ready_entities(kind) for kind in OTHERS])
        others |= any([waitable.is_ready(wait_set) for waitable in self._waitables])
        pointers = wait_set.get_ready_entities('subscription')
        ready = []
        for subscription, pointer, is_direct in zip(
            self._subscriptions, self._pointers, self._is_direct
        ):
            if pointer in pointers:
                if is_direct:
                    ready.append(subscription)
                else:
                    others = True
        return ready, others

    def close(self) -> None:
        self._stack.close()


def _take(subscription: Subscription) -> None:
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    if taken is None:
        return
    # rclpy of Humble has no such types of callbacks: all take the message alone.
    kinds = getattr(Subscription, 'CallbackType', None)
    if kinds is None or subscription._callback_type is kinds.MessageOnly:
        subscription.callback(taken[0])
    else:
        subscription.callback(*taken)
