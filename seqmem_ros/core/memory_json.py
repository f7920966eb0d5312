"""A memory report in what JSON knows: null stands for what is infinite or not there."""

from __future__ import annotations

from dataclasses import asdict
import math
from typing import Any

from seqmem_ros.core.memory_filters import FilterMemory
from seqmem_ros.core.memory_linear import LinearMemory
from seqmem_ros.core.memory_linear import OnePole
from seqmem_ros.core.memory_report import LayerMemory
from seqmem_ros.core.memory_report import MemoryReport
from seqmem_ros.core.memory_trace import LayerTrace
from seqmem_ros.core.memory_trace import mean_by_age


def report_json(report: MemoryReport) -> dict[str, Any]:
    """
    Say all that a report says.

    :param report: from :func:`~seqmem_ros.core.memory_report.report_memory`
    :returns: numbers, texts, lists and dicts
    """
    return {
        'rate_hz': report.rate_hz,
        'linearised_at': report.at,
        'gradient_outputs': report.n_last,
        'parameters': [count._asdict() for count in report.counts],
        'layers': [_layer_json(layer) for layer in report.layers],
        'traces': [_trace_json(each) for each in report.traces],
        'attention_reach_samples': _finite(report.reach_samples),
        'filters': [_filter_json(each) for each in report.filters],
        'training': asdict(report.training),
    }


def _layer_json(layer: LayerMemory) -> dict[str, Any]:
    return {
        'path': layer.path,
        'kind': layer.kind,
        **_linear_json(layer.linear),
        'units': [_pole_json(unit) for unit in layer.units],
        'influence': layer.influence.tolist(),
        'gradient': None if layer.gradient is None else layer.gradient.tolist(),
    }


def _linear_json(linear: LinearMemory) -> dict[str, Any]:
    modes = [
        {
            'real': mode.value.real,
            'imaginary': mode.value.imag,
            'horizon_samples': _finite(mode.horizon_samples),
            'period_samples': _finite(mode.period_samples),
        }
        for mode in linear.modes
    ]
    return {
        'spectral_radius': linear.spectral_radius,
        'largest_singular_value': linear.largest_singular_value,
        'modes': modes,
    }


def _pole_json(pole: OnePole) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in pole._asdict().items()}


def _filter_json(each: FilterMemory) -> dict[str, Any]:
    return {
        'name': each.name,
        'reach_samples': _finite(each.reach_samples),
        'one_pole': each.one_pole and _pole_json(each.one_pole),
        'modes': each.modes and _linear_json(each.modes)['modes'],
    }


def _trace_json(each: LayerTrace) -> dict[str, Any]:
    ages = None if each.attention is None else mean_by_age(each.attention)
    return {
        'path': each.path,
        'kind': each.kind,
        'norms': each.norms.tolist(),
        'mean_attention_by_age': None if ages is None else ages.tolist(),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
