"""What a run is compared with, as people set it."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from reward_profiling.values import Checked, Name


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineOptions(Checked):
    """What a run is compared with when it is done."""

    baseline: Name | None = None
    """Rollouts file of an earlier output of the same tasks, to compare this one with;
    its plan lies beside it."""

    max_regression: Annotated[float, Ge(0)] | None = None
    """How far the mean reward may fall below the baseline's. Falling further is a
    critical finding. Default: numbers without a verdict."""
