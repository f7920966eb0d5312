"""What a node says of a transition that failed, and for how long."""

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

import rclpy
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from seqmem_ros.ros import lifecycle


def refused(*arguments):
    """Stand in for a subscription that cannot be made."""
    raise RuntimeError('no more of them')


def test_a_failure_is_told_until_the_next_success(ros_domain, monkeypatch):
    context = Context()
    rclpy.init(args=[], context=context, domain_id=ros_domain)
    node = lifecycle.SeqmemNode(
        context=context,
        parameter_overrides=[Parameter('model', value='difference')],
        use_global_arguments=False,
    )
    subscribe = lifecycle.subscribe
    try:
        for end in ('activate', 'cleanup'):
            assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
            monkeypatch.setattr(lifecycle, 'subscribe', refused)
            assert node.trigger_activate() == TransitionCallbackReturn.FAILURE
            stage, failure, _ = node._condition()
            assert (stage, failure) == (
                'inactive', 'cannot activate: RuntimeError: no more of them'
            )  # fmt: skip
            monkeypatch.setattr(lifecycle, 'subscribe', subscribe)
            if end == 'activate':
                node.trigger_activate()
                assert node._condition()[:2] == ('active', '')
                node.trigger_deactivate()
            node.trigger_cleanup()
            assert node._condition()[:2] == ('unconfigured', '')
    finally:
        node.destroy_node()
        rclpy.try_shutdown(context=context)
