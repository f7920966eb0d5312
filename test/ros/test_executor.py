"""The executor of the node: messages, and everything else as rclpy has it."""

import time
from types import SimpleNamespace

import pytest

rclpy = pytest.importorskip('rclpy')

from rclpy.context import Context  # noqa: E402
from rclpy.executors import ExternalShutdownException  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from seqmem_ros.ros import executor as executor_module  # noqa: E402
from seqmem_ros.ros.executor import MessageFirstExecutor  # noqa: E402

DEADLINE_S = 20.0


@pytest.fixture(params=['direct', 'as rclpy does'])
def spun(request, monkeypatch):
    if request.param != 'direct':
        # As with a release of rclpy that has other inner names.
        monkeypatch.setattr(executor_module, 'rclpy_implementation', SimpleNamespace())
    context = Context()
    rclpy.init(args=[], context=context)
    node = rclpy.create_node('executor_test', context=context)
    executor = MessageFirstExecutor(context=context)
    executor.add_node(node)
    yield node, executor
    assert executor._knows_rclpy == (request.param == 'direct')
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


def test_messages_that_wait_come_in_order_and_starve_nobody(spun):
    node, executor = spun
    heard, busy, ticks = [], [], []
    publisher = node.create_publisher(String, 'executor_topic', 200)
    echo = node.create_publisher(String, 'executor_echo', 200)

    def hear(message):
        heard.append(int(message.data))
        echo.publish(message)

    node.create_subscription(String, 'executor_topic', hear, 200)
    # There is always one more message.
    node.create_subscription(
        String, 'executor_echo', lambda message: busy.append(echo.publish(message)), 200
    )
    node.create_timer(0.01, lambda: ticks.append(len(busy)))
    spin_until(executor, lambda: publisher.get_subscription_count() and ticks)
    for k in range(100):
        publisher.publish(String(data=str(k)))
    spin_until(executor, lambda: len(heard) == 100 and ticks[-1] > 300)
    assert heard == list(range(100))


def test_a_subscription_that_its_own_callback_takes_back_hears_no_more(spun):
    node, executor = spun
    heard, ticks = [], []
    publisher = node.create_publisher(String, 'executor_topic', 10)

    def hear(message):
        heard.append(message.data)
        node.destroy_subscription(subscription)

    subscription = node.create_subscription(String, 'executor_topic', hear, 10)
    node.create_timer(0.01, lambda: ticks.append(True))
    spin_until(executor, lambda: publisher.get_subscription_count() and ticks)
    for word in 'abc':
        publisher.publish(String(data=word))
    spin_until(executor, lambda: heard)
    seen = len(ticks)
    spin_until(executor, lambda: len(ticks) > seen + 2)
    assert heard == ['a']


def test_coroutines_are_left_to_rclpy(spun):
    node, executor = spun
    heard = []
    publisher = node.create_publisher(String, 'executor_topic', 10)

    async def hear(message):
        heard.append(message.data)

    node.create_subscription(String, 'executor_topic', hear, 10)
    node.create_timer(0.005, lambda: publisher.publish(String(data='x')))
    spin_until(executor, lambda: len(heard) >= 3)


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
