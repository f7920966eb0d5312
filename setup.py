"""What is installed: for pip (with or without ROS on the machine) and for colcon."""

from glob import glob
from pathlib import Path
import re

from setuptools import find_packages
from setuptools import setup

NAME = 'seqmem_ros'
VERSION = re.search(r"__version__ = '(.+)'", Path(NAME, '__init__.py').read_text())[1]

ROS = [
    'ros-jazzy-rclpy',
    'ros-jazzy-sensor-msgs',
    'ros-jazzy-std-msgs',
    'ros-jazzy-std-srvs',
    'ros-jazzy-diagnostic-msgs',
    'ros-jazzy-rmw-fastrtps-cpp',
]
OFFLINE = ['rosbags>=0.11.8', 'matplotlib>=3.7', 'tqdm', 'scipy>=1.10']
TRAIN = ['optax>=0.2']

setup(
    name=NAME,
    version=VERSION,
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['weights/*', 'data/*', 'data/*/*']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        (f'share/{NAME}/launch', sorted(glob('launch/*.launch.py'))),
        (f'share/{NAME}/config', sorted(glob('config/*.yaml'))),
    ],
    # rosdistro has no key for jax and safetensors, so they stand here and not in package.xml.
    install_requires=['setuptools', 'jax>=0.6.2', 'numpy>=1.26', 'safetensors>=0.4.3'],
    extras_require={
        'ros': ROS,
        'offline': OFFLINE,
        'train': [*OFFLINE, *TRAIN],
        'convert': ['h5py'],
        'test': ['pytest>=7', 'pytest-timeout', 'hypothesis', 'h5py', 'ruff', *OFFLINE, *TRAIN],
        # Checks against other libraries; large, so never installed unasked.
        'peers': ['torch==2.13.0'],
        'bench': ['torch==2.13.0', 'onnx', 'onnxruntime', 'equinox', 'flax', *OFFLINE],
    },
    python_requires='>=3.10',
    zip_safe=True,
    maintainer='seqmem_ros maintainers',
    maintainer_email='maintainers@seqmem-ros.invalid',
    description='Sequence models with memory for the joint states of a robot arm',
    long_description=Path('README.md').read_text() if Path('README.md').exists() else '',
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'seqmem_node = seqmem_ros.ros.node:main',
            'seqmem = seqmem_ros.cli.main:main',
        ],
    },
)
