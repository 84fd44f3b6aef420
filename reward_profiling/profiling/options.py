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
    """Rewards of a task that differ by no more than this count as equal: no signal."""

    leave_out_empty: bool = False
    """Leave records without an answer (neither text nor a tool call) out of the
    insights, like masked records. Gym's own files still count them."""

    answer_field: Name | None = None
    """Field of the records that holds the extracted answer, such as extracted_answer.
    It is used for the answer that most rollouts of a task give (majority)."""

    strict: Strictness | None = None
    """Exit with code 4 when there is a finding this bad or worse: "critical", or
    "warning". Default: findings do not change the exit code."""
