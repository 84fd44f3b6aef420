"""Checks of signal: whether rewards differ, and what passes.

Each looks at one agent and returns a finding, or None. With too little data: None.
"""

from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.measures.learning_signal import Signal
from reward_profiling.numerics.figures import figure, percent, setting
from reward_profiling.profiling.finding import Finding

_HALF = 0.5
_SEVERAL = 2
"""With fewer tasks, what all of them do proves nothing."""
_FEW_TASKS = 5
_ENOUGH_ROLLOUTS = 8


def constant_reward(agent: AgentPart) -> Finding | None:
    """Find that every reward is the same."""
    reward = agent.section.reward
    low, high = reward.min or 0.0, reward.max or 0.0
    is_told = reward.num_rollouts >= _ENOUGH_ROLLOUTS and reward.num_tasks >= _SEVERAL
    if not is_told or high - low > agent.options.signal_tolerance:
        return None
    return agent.finding(
        "constant_reward",
        "critical",
        f"all {reward.num_rollouts} rewards of {reward.num_tasks} tasks are"
        f" {figure(low)}",
        "give the verifier a right and a wrong answer: it probably returns a constant."
        " If it does not, these tasks are far too hard or far too easy for this model",
        rollouts=reward.num_rollouts,
        tasks=reward.num_tasks,
        value=low,
    )


def threshold_unreached(agent: AgentPart) -> Finding | None:
    """Find that no reward reaches the threshold, though they differ."""
    reward, passing = agent.section.reward, agent.section.passing
    is_told = reward.num_rollouts >= _ENOUGH_ROLLOUTS and _varies(agent)
    if not is_told or passing.passed:
        return None
    threshold = agent.options.pass_threshold
    return agent.finding(
        "threshold_unreached",
        "warning",
        f"no reward reaches the pass threshold {setting(threshold)}; rewards lie"
        f" between {_ends(agent)} (n={reward.num_rollouts})",
        "this threshold makes all pass rates 0: set --pass-threshold to the reward of"
        " a solved task",
        threshold=threshold,
        min=reward.min,
        max=reward.max,
    )


def threshold_always_reached(agent: AgentPart) -> Finding | None:
    """Find that every reward reaches the threshold, and they differ."""
    reward, passing = agent.section.reward, agent.section.passing
    is_told = reward.num_rollouts >= _ENOUGH_ROLLOUTS and _varies(agent)
    if not is_told or passing.passed < passing.num_rollouts:
        return None
    threshold = agent.options.pass_threshold
    return agent.finding(
        "threshold_always_reached",
        "warning",
        f"every reward reaches the pass threshold {setting(threshold)}; rewards lie"
        f" between {_ends(agent)} (n={reward.num_rollouts})",
        "this threshold makes all pass rates 1: set --pass-threshold to the reward of"
        " a solved task",
        threshold=threshold,
        min=reward.min,
        max=reward.max,
    )


def _varies(agent: AgentPart) -> bool:
    reward = agent.section.reward
    spread = (reward.max or 0.0) - (reward.min or 0.0)
    return spread > agent.options.signal_tolerance


def _ends(agent: AgentPart) -> str:
    reward = agent.section.reward
    return f"{figure(reward.min or 0.0)} and {figure(reward.max or 0.0)}"


def _what_is_left(signal: Signal) -> str:
    """Say what tasks can teach when all of them pass, or none does."""
    if not signal.num_signal:
        return ", so none can teach"
    return f"; only the {signal.num_signal} whose rewards differ can teach"


def never_passes(agent: AgentPart) -> Finding | None:
    """Find that no task ever passes."""
    signal = agent.section.signal
    if signal.never < _SEVERAL or signal.sometimes or signal.always:
        return None
    bound = signal.never_upper_bound or 1.0
    return agent.finding(
        "never_passes",
        "warning",
        f"none of {signal.never} tasks ever passes{_what_is_left(signal)}; a task that"
        f" failed all {signal.never_rollouts} may still pass up to"
        f" {percent(bound)} of the time",
        "check the verifier with a right answer; then take easier tasks, a stronger"
        " model, or more repeats",
        tasks=signal.never,
        upper_bound=bound,
    )


def always_passes(agent: AgentPart) -> Finding | None:
    """Find that every task always passes."""
    signal = agent.section.signal
    if signal.always < _SEVERAL or signal.sometimes or signal.never:
        return None
    return agent.finding(
        "always_passes",
        "warning",
        f"all {signal.always} tasks always pass{_what_is_left(signal)}",
        "check the verifier with a wrong answer; then take harder tasks",
        tasks=signal.always,
    )


def little_signal(agent: AgentPart) -> Finding | None:
    """Find that most tasks have no learning signal."""
    signal = agent.section.signal
    told = signal.num_signal + signal.num_zero_signal
    if told < _FEW_TASKS or signal.num_zero_signal <= _HALF * told:
        return None
    return agent.finding(
        "little_signal",
        "note",
        f"in {signal.num_zero_signal} of {told} tasks all rewards are the same; groups"
        " of that size give no gradient",
        "keep the tasks that can teach with `reward-profiling select`",
        zero_signal=signal.num_zero_signal,
        tasks=told,
    )


def signal_only_in_components(agent: AgentPart) -> Finding | None:
    """Find tasks whose reward components differ although the total does not."""
    signal = agent.section.signal
    if not signal.num_signal_in_components_only:
        return None
    return agent.finding(
        "signal_only_in_components",
        "note",
        f"in {signal.num_signal_in_components_only} of {signal.num_zero_signal} tasks"
        " whose total reward is always the same, one of its components differs",
        "use a trainer that normalizes each component separately (GDPO) to learn from"
        " these tasks",
        tasks=signal.num_signal_in_components_only,
        zero_signal=signal.num_zero_signal,
    )
