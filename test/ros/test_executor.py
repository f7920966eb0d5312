"""The executor of the node: messages, and everything else as rclpy has it."""

import time

import pytest

rclpy = pytest.importorskip('rclpy')

from rclpy.context import Context  # noqa: E402
from rclpy.executors import ExternalShutdownException  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from seqmem_ros.ros.executor import MessageFirstExecutor  # noqa: E402

DEADLINE_S = 20.0


@pytest.fixture
def spun():
    context = Context()
    rclpy.init(args=[], context=context)
    node = rclpy.create_node('executor_test', context=context)
    executor = MessageFirstExecutor(context=context)
    executor.add_node(node)
    yield node, executor
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown(context=context)


def spin_until(executor, condition):
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s
        executor.spin_once()


def test_messages_timers_and_services_all_get_their_turn(spun):
    node, executor = spun
    heard, ticks, asked = [], [], []

    def answer(request, response):
        asked.append(True)
        response.message = 'done'
        return response

    publisher = node.create_publisher(String, 'executor_topic', 10)
    node.create_subscription(String, 'executor_topic', heard.append, 10)
    node.create_service(Trigger, 'executor_service', answer)
    client = node.create_client(Trigger, 'executor_service')

    def tick():
        ticks.append(len(ticks))
        publisher.publish(String(data=str(len(ticks))))

    node.create_timer(0.005, tick)
    spin_until(executor, lambda: len(heard) >= 5 and client.service_is_ready())
    future = client.call_async(Trigger.Request())
    spin_until(executor, lambda: future.done() and len(heard) >= 10)
    assert asked == [True]
    assert future.result().message == 'done'
    numbers = [int(message.data) for message in heard]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_subscriptions_made_and_taken_back_while_it_spins(spun):
    node, executor = spun
    publisher = node.create_publisher(String, 'executor_topic', 10)
    node.create_timer(0.005, lambda: publisher.publish(String(data='x')))
    first, second = [], []
    subscription = node.create_subscription(String, 'executor_topic', first.append, 10)
    spin_until(executor, lambda: first)
    node.destroy_subscription(subscription)
    heard = len(first)
    node.create_subscription(String, 'executor_topic', second.append, 10)
    spin_until(executor, lambda: len(second) >= 3)
    assert len(first) == heard


def test_a_fault_in_a_callback_comes_out(spun):
    node, executor = spun

    def fail(message):
        raise ZeroDivisionError('on purpose')

    publisher = node.create_publisher(String, 'executor_topic', 10)
    node.create_timer(0.005, lambda: publisher.publish(String(data='x')))
    node.create_subscription(String, 'executor_topic', fail, 10)
    with pytest.raises(ZeroDivisionError, match='on purpose'):
        spin_until(executor, lambda: False)


def test_the_end_of_the_context_ends_it(spun):
    node, executor = spun
    node.create_timer(0.005, lambda: node.context.try_shutdown())
    with pytest.raises(ExternalShutdownException):
        spin_until(executor, lambda: False)
