"""Checks of answers: whether rewards follow them, and whether there are any.

Each looks at one agent and returns a finding, or None. With too little data: None.
"""

from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.measures.length import Length, Subset
from reward_profiling.insights.table_rows import scored_rows
from reward_profiling.numerics.figures import correlation, percent
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.rollout_table import NO

_MOSTLY = 0.8
_SHARE = 0.1
"""From this share on, the finding is a warning and not a note."""
_RARE = 0.01
_FEW_TASKS = 5
_NO_CHANCE = 20
"""With so many tasks, equal rewards for different answers are no coincidence."""
_ENOUGH_TASKS = 8
_ENOUGH_FOR_BIAS = 50
_BIAS = 0.3


def reward_ignores_answer(agent: AgentPart) -> Finding | None:
    """Look for rewards that depend on the task and never on the answer."""
    table, varied, differing = agent.table, 0, 0
    for unit in agent.units:
        answers = {table.answer[row] for row in scored_rows(table, unit.rows)} - {0}
        if len(answers) > 1:
            varied += 1
            differing += unit.has_signal
    if varied < _ENOUGH_TASKS or differing:
        return None
    return agent.finding(
        "reward_ignores_answer",
        "critical" if varied >= _NO_CHANCE else "warning",
        f"all {varied} tasks with different answers gave every answer the same"
        " reward, although rewards differ between tasks",
        "the reward seems to depend on the task alone: check that the verifier reads"
        " the answer; if it does, these tasks are all far too easy or far too hard",
        tasks_with_different_answers=varied,
    )


def answer_scored_differently(agent: AgentPart) -> Finding | None:
    """Find answers whose repetition got a different reward."""
    table, repeated, differing = agent.table, 0, 0
    for unit in agent.units:
        by_answer: dict[int, list[float]] = {}
        for row in scored_rows(table, unit.rows):
            if table.answer[row] and table.empty[row] == NO:
                by_answer.setdefault(table.answer[row], []).append(table.reward[row])
        for rewards in by_answer.values():
            spread = max(rewards) - min(rewards)
            repeated += len(rewards) > 1
            differing += spread > agent.options.signal_tolerance
    if not differing:
        return None
    share = differing / repeated
    return agent.finding(
        "answer_scored_differently",
        "warning" if share >= _SHARE / 2 else "note",
        f"{differing} of {repeated} answers that a task got more than once, word for"
        " word, did not always get the same reward",
        "look for an inconsistent judge, a time limit, or state that rollouts share:"
        " this noise is part of every number here",
        answers_given_again=repeated,
        rewarded_differently=differing,
    )


def repeats_identical(agent: AgentPart) -> Finding | None:
    """Find tasks whose repeats all gave the same answer."""
    table, told, same = agent.table, 0, 0
    for unit in agent.units:
        rows = [row for row in scored_rows(table, unit.rows) if table.empty[row] == NO]
        answers = [table.answer[row] for row in rows if table.answer[row]]
        if len(answers) >= MIN_ROLLOUTS:
            told += 1
            same += len(set(answers)) == 1
    if told < _FEW_TASKS or same < _MOSTLY * told:
        return None
    return agent.finding(
        "repeats_identical",
        "critical",
        f"in {same} of {told} tasks every repeat gave the same answer, word for word",
        "look for a temperature of 0, one seed for all repeats, or a cache: identical"
        " repeats count as one rollout, and their spread of 0 proves nothing",
        tasks=told,
        tasks_with_one_answer=same,
    )


def empty_answers(agent: AgentPart) -> Finding | None:
    """Find records without an answer."""
    length = agent.section.length
    share = length.num_empty / length.num_empty_known if length.num_empty_known else 0.0
    if share < _RARE:
        return None
    return agent.finding(
        "empty_answers",
        "warning" if share >= _SHARE else "note",
        f"{length.num_empty} of {length.num_empty_known} records"
        f" ({percent(share)}) hold no answer: neither text nor a tool call"
        + _only_thinking(length),
        "check the chat template, the stop words and the reasoning parser, which may"
        " drop the answer; "
        + (
            "these rollouts are left out"
            if agent.options.leave_out_empty
            else "these rollouts count with the reward they got; --leave-out-empty"
            " leaves them out"
        ),
        empty=length.num_empty,
        known=length.num_empty_known,
        only_thought=length.num_only_thought,
        mean_reward=length.empty.mean_reward,
    )


def _only_thinking(length: Length) -> str:
    count = length.num_only_thought
    return f"; {count} of them hold thinking and nothing after it" if count else ""


def empty_answers_rewarded(agent: AgentPart) -> Finding | None:
    """Find records without an answer that pass."""
    empty = agent.section.length.empty
    passed = round((empty.pass_rate or 0.0) * empty.num_rollouts)
    if not passed:
        return None
    return agent.finding(
        "empty_answers_rewarded",
        "critical",
        f"{passed} of {empty.num_rollouts} records without an answer pass",
        "make the verifier reject empty answers, or a model will learn to give none",
        empty=empty.num_rollouts,
        passed=passed,
    )


def truncated_answers(agent: AgentPart) -> Finding | None:
    """Find answers that were cut off."""
    length = agent.section.length
    known = length.num_truncation_known
    share = length.num_truncated / known if known else 0.0
    if share < _RARE:
        return None
    rates = [
        f"{percent(kind.pass_rate)} of {name} pass (n={kind.num_rollouts})"
        for name, kind in (("those", length.truncated), ("the others", length.finished))
        if kind.pass_rate is not None
    ]
    return agent.finding(
        "truncated_answers",
        "warning" if share >= _SHARE else "note",
        f"{length.num_truncated} of {known} answers ({percent(share)}) were cut off"
        + "".join(f"; {rate}" for rate in rates)
        + _lengths(length.truncated, length.finished),
        "raise max_output_tokens, or the context length of the model's server: nobody"
        " knows how a truncated answer would have ended",
        truncated=length.num_truncated,
        known=known,
        pass_rate_truncated=length.truncated.pass_rate,
        pass_rate_finished=length.finished.pass_rate,
        mean_tokens_truncated=length.truncated.mean_tokens,
        mean_tokens_finished=length.finished.mean_tokens,
    )


def _lengths(cut: Subset, whole: Subset) -> str:
    if cut.mean_tokens is None or whole.mean_tokens is None:
        return ""
    cut_off, finished = f"{cut.mean_tokens:,.0f}", f"{whole.mean_tokens:,.0f}"
    return f"; they have {cut_off} tokens on average, the others {finished}"


def length_bias(agent: AgentPart) -> Finding | None:
    """Find that longer answers to a task get higher or lower rewards."""
    found = agent.section.length.correlation
    value = found.within_spearman
    is_told = found.num_rollouts >= _ENOUGH_FOR_BIAS and value is not None
    if not is_told or value is None or abs(value) < _BIAS:
        return None
    word = "higher" if value > 0 else "lower"
    return agent.finding(
        "length_bias",
        "note",
        f"within a task, longer answers get {word} rewards: rank correlation"
        f" {correlation(value)} (n={found.num_rollouts} rollouts of"
        f" {found.num_tasks} tasks)",
        "training on this reward may change the length of answers; check truncated"
        " answers first",
        within_spearman=value,
        within_pearson=found.within_pearson,
        pooled_pearson=found.pearson,
        rollouts=found.num_rollouts,
    )
