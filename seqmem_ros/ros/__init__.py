"""ROS 2 around :mod:`seqmem_ros.core`: the only part that imports rclpy and messages."""
