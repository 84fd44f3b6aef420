"""What a run is compared with, as people set it."""

from typing import Annotated

from pydantic import Field

from reward_profiling.values import Frozen, Name


class BaselineOptions(Frozen):
    """What a run is compared with when it is done."""

    baseline: Name | None = None
    """Rollouts file of an earlier output of the same tasks, to compare this one with;
    its plan lies beside it."""

    max_regression: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """How much lower than the baseline's the mean reward may be. Worse is a critical
    finding. Default: no verdict, only numbers."""
