"""The collector of garbage: it leaves alone what stays for as long as the node is active."""

import gc

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter

from seqmem_ros.ros.lifecycle import SeqmemNode


def test_what_is_loaded_is_left_alone_until_it_may_be_exchanged(ros_domain):
    context = Context()
    rclpy.init(args=[], context=context, domain_id=ros_domain)
    model = Parameter('model', value='difference')
    node = SeqmemNode(context=context, parameter_overrides=[model], use_global_arguments=False)
    try:
        for _ in range(2):
            assert node.start()
            # Python itself puts a few hundred aside when it starts.
            assert gc.get_freeze_count() > 10_000
            node.trigger_deactivate()
            assert gc.get_freeze_count() == 0
            node.trigger_cleanup()
    finally:
        gc.unfreeze()
        node.destroy_node()
        rclpy.try_shutdown(context=context)
