"""Optional packages: checks them, and tells the command that installs them."""

import sys
from importlib.util import find_spec

from reward_profiling.collecting.spreading.spread import Runner
from reward_profiling.errors import ConfigError

_MODULES = {"dask": "prefect_dask", "ray": "prefect_ray", "slurm": "prefect_submitit"}
_SLURM_PYTHON = (3, 12)


def need_extra(runner: Runner) -> None:
    """Refuse a runner whose package is not installed.

    Raises:
        ConfigError: names the command that installs it.
    """
    module = _MODULES.get(runner)
    if module is None or find_spec(module) is not None:
        return
    said = (
        f"--runner {runner} needs the extra [{runner}]:"
        f" pip install 'gym-reward-profiling[{runner}]'"
    )
    if runner == "slurm" and sys.version_info < _SLURM_PYTHON:
        said += ". Its package prefect-submitit needs Python 3.12 or newer"
    raise ConfigError(said)
