"""``seqmem convert``: weights of PyTorch and Keras into a model for the node, and back."""

import argparse
from collections.abc import Mapping
import json
from math import isfinite
from pathlib import Path
from typing import Any

from seqmem_ros.core.errors import SeqmemError

_EPILOG = """\
what the file does not say
  A file of weights says neither what the inputs are nor, for PyTorch, in which order modules are
  used. --network names the modules in the order of the data with what stands between them:
      --network embed,relu,lstm,head
      --network embed,encoder.layers.0:n_heads=4:window=5,head
  It is not needed for one recurrent module with at most one linear one, nor for .keras files.
  Attention streams with window=W: each sample attends to the last W.

examples
  seqmem convert lstm.pt                                   say what the file holds
  seqmem convert lstm.pt lstm.safetensors --joints j1,j2,j3,j4,j5,j6 \\
      --input-mean 0.1,0,0.2,0,0,0 --input-scale 1.2,1,1,1,2,2 --output-scale 0.8 \\
      --rate-hz 100 --check from_pytorch.npz
  seqmem convert gru.keras gru.safetensors --task label --labels still,moving
  seqmem convert lstm.pt lstm.safetensors --description robot.json
  seqmem convert lstm.safetensors back.pt --like lstm.pt   the way back to PyTorch
"""

_MEANING_OPTIONS = (
    ('task', str, "'velocity' (default): an output a joint; 'label': one a class"),
    ('joints', tuple, 'names, in the order of the training data; none: one network, any joint'),
    ('features', tuple, 'what it reads of each joint: position (default), velocity, effort, '
     'difference, lag_velocity, step_s'),
    ('input_order', str, "'feature' (default): positions of all joints, then velocities of all; "
     "'joint': all of the first joint, then of the second"),
    ('labels', tuple, 'names of the classes, in the order of the outputs'),
    ('input_mean', float, 'subtracted from the inputs; one number, or one an input'),
    ('input_scale', float, 'divides them thereafter'),
    ('output_mean', float, 'added to the outputs, after scaling, rad/s'),
    ('output_scale', float, 'multiplies the outputs, rad/s'),
    ('rate_hz', float, 'rate of the training data, or lowest,highest'),
)  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'convert',
        help='turn weights of PyTorch or Keras into a model for the node, and back',
        description='Turn weights of PyTorch (.safetensors, .pt) or Keras (.keras, .weights.h5) '
        'into a model for the node; or a model into a PyTorch state dict.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('source', type=Path, help='file to read')
    parser.add_argument('out', type=Path, nargs='?', help='file to write; none: say what is there')
    parser.add_argument('--network', metavar='PLAN', help='order of the modules, see below')
    for name, kind, text in _MEANING_OPTIONS:
        parser.add_argument(
            f'--{name.replace("_", "-")}',
            metavar='A,B,..' if kind is not str else 'NAME',
            help=text,
        )
    parser.add_argument(
        '--description', type=Path, metavar='JSON', help='file with the options above, by name'
    )
    parser.add_argument('--note', default='', help='a sentence to keep with the model')
    parser.add_argument(
        '--check',
        type=Path,
        metavar='NPZ',
        help="'inputs' (T, n_in) and 'outputs' (T, n_out), or only the last one (n_out,), of the "
        'network in the other program, without scaling: fails if the converted one differs',
    )
    parser.add_argument(
        '--like', type=Path, help='state dict whose names and biases to follow on the way back'
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """
    List, convert or convert back.

    :param args: parsed arguments
    :returns: exit code
    :raises SeqmemError: if something does not fit
    """
    from seqmem_ros.offline.convert.read import is_own_file

    if is_own_file(args.source):
        return _convert_back(args)
    return _list(args) if args.out is None else _convert(args)


def meaning_options(args: argparse.Namespace) -> dict[str, Any]:
    """
    Collect what the user says of inputs and outputs: options override the description file.

    :param args: parsed arguments
    :returns: arguments of :class:`seqmem_ros.offline.convert.describe.Meaning`
    :raises SeqmemError: for a name or value that is not understood
    """
    given = _read_description(args.description) if args.description else {}
    known = {name: kind for name, kind, _ in _MEANING_OPTIONS}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SeqmemError(
            f'{args.description}: expected {", ".join(known)}, got also {", ".join(unknown)}'
        )
    given.update({name: getattr(args, name) for name in known if getattr(args, name) is not None})
    options = {name: _value(name, known[name], value) for name, value in given.items()}
    if 'rate_hz' in options:
        rates = options['rate_hz']
        if len(rates) not in (1, 2):
            raise SeqmemError(f'rate_hz: expected one or two numbers, got {len(rates)}')
        options['rate_hz'] = (rates[0], rates[-1])
    return options


def _read_description(path: Path) -> dict[str, Any]:
    try:
        description = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SeqmemError(f'--description: expected a JSON file, got {path}: {error}') from error
    if not isinstance(description, dict):
        raise SeqmemError(f'{path}: expected an object with options by name, got {description}')
    return description


def _value(name: str, kind: type, value: Any) -> Any:
    if kind is str:
        return str(value)
    items = value.split(',') if isinstance(value, str) else value
    items = list(items) if isinstance(items, (list, tuple)) else [items]
    if kind is tuple:
        return tuple(str(item).strip() for item in items if str(item).strip())
    try:
        numbers = tuple(float(item) for item in items)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not all(map(isfinite, numbers)):
        raise SeqmemError(f'{name}: expected finite numbers between commas, got {value}')
    return numbers


def _list(args: argparse.Namespace) -> int:
    from seqmem_ros.offline.convert.read import read_source

    source = read_source(args.source)
    print(f'{args.source}: {source.program}')
    for name, module in source.modules.items():
        print(f'  {name or "."}  {module.kind}')
        for tensor, array in module.tensors.items():
            print(f'      {tensor}  {tuple(array.shape)}')
    if source.steps is not None:
        print(f'order: {", ".join(step.name for step in source.steps)}')
    return 0


def _convert(args: argparse.Namespace) -> int:
    from seqmem_ros.core.weights import load_model
    from seqmem_ros.core.weights import save_model
    from seqmem_ros.offline.convert.compare import compare
    from seqmem_ros.offline.convert.describe import make_model
    from seqmem_ros.offline.convert.describe import Meaning
    from seqmem_ros.offline.convert.describe import reach_of
    from seqmem_ros.offline.convert.read import convert_source
    from seqmem_ros.offline.convert.read import read_source
    from seqmem_ros.offline.inspect_card import layer_in_words

    _check_out(args)
    source = read_source(args.source)
    converted = convert_source(source, args.network)
    card = {'converted_from': source.program, 'file': args.source.name, 'note': args.note}
    meaning = Meaning(**meaning_options(args), card=card)
    model = make_model(converted, meaning)
    if args.check is not None:
        largest, n_outputs = compare(converted, args.check)
        print(f'check: largest difference {largest:.2g} over {n_outputs} outputs')
    save_model(args.out, model)
    spec = load_model(args.out).spec
    print(f'{args.out}: {model.kind}, {spec.task}')
    for layer in spec.network['layers']:
        print(f'  {layer_in_words(layer)}')
    print(f'inputs: {", ".join(_inputs_in_words(spec))}')
    print(f'outputs: {", ".join(spec.labels or spec.joints or ("velocity of the joint",))}')
    print(reach_of(model.network))
    return 0


def _convert_back(args: argparse.Namespace) -> int:
    from seqmem_ros.core.weights import load_model
    from seqmem_ros.nn import Sequential
    from seqmem_ros.offline.convert.to_torch import state_dict_of
    from seqmem_ros.offline.convert.torch_file import read_state_dict
    from seqmem_ros.offline.convert.torch_file import write_state_dict

    if args.out is None:
        raise SeqmemError(
            f'{args.source} is a model already: see it with `seqmem inspect`, or name a .pt or '
            f'.safetensors file to write a PyTorch state dict to'
        )
    model = load_model(args.source)
    network = model.network
    layers = network.layers if isinstance(network, Sequential) else (network,)
    like = None if args.like is None else read_state_dict(args.like)
    tensors = state_dict_of(layers, _names_of(model.spec.card, len(layers)), like)
    write_state_dict(args.out, tensors)
    print(f'{args.out}: PyTorch state dict')
    for name, array in tensors.items():
        print(f'  {name}  {tuple(array.shape)}')
    return 0


def _names_of(card: Mapping[str, Any], n_layers: int) -> list[str | None]:
    names = card.get('modules', ())
    return list(names) if len(names) == n_layers else []


def _check_out(args: argparse.Namespace) -> None:
    if args.out.suffix != '.safetensors':
        raise SeqmemError(
            f'expected a file to write that ends in .safetensors, got {args.out}; only a model '
            f'goes into other files, and {args.source} is none of this package'
        )
    if args.out.resolve() == args.source.resolve():
        raise SeqmemError(f'expected another file to write than {args.source}, which is read')


def _inputs_in_words(spec: Any) -> list[str]:
    """Name the inputs in the order in which the node computes them: joint by joint."""
    if not spec.joints:
        return [f'{feature} of the joint' for feature in spec.features]
    return [f'{feature} of {joint}' for joint in spec.joints for feature in spec.features]
