"""How rewards are read, as people set it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from reward_profiling.values import Checked, Name

Strictness = Literal["critical", "warning"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileOptions(Checked):
    """How rewards are read."""

    pass_threshold: float = 1.0
    """A rollout passes when its reward is at least this, give or take 1e-9."""

    signal_tolerance: Annotated[float, Ge(0)] = 1e-6
    """Rewards of a task that differ by no more than this are the same: no signal."""

    leave_out_empty: bool = False
    """Leave records without an answer, neither text nor a call of a tool, out of what
    the rewards say, as masked ones are. Gym's own files count them all the same."""

    answer_field: Name | None = None
    """Field of the records that holds the extracted answer, such as extracted_answer:
    by it, the answer that most rollouts of a task give is looked at (majority)."""

    strict: Strictness | None = None
    """Exit with code 4 when there is a finding this bad or worse: "critical", or
    "warning". Default: findings are told and change no exit code."""
