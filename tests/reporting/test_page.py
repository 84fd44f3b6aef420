"""What the report says and draws, before any HTML."""

import json
import math
import random
from collections.abc import Callable
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reward_profiling.insights.document import Insights
from reward_profiling.reporting.page.cloud import MOST_POINTS, Point, thinned
from reward_profiling.reporting.page.contents import agent_names, page
from reward_profiling.reporting.page.histogram import bar_of, bars
from reward_profiling.reporting.page.parts import Page
from reward_profiling.reporting.page.task_columns import rollout_columns, task_columns
from tests.reporting.samples import (
    FINDINGS,
    SCALES,
    a_hostile_run,
    a_run,
    a_task,
    insights_of,
)

PLOTS = [
    "histogram", "pass_curve", "pass_rates", "groups", "coverage", "length",
    "completion",
]  # fmt: skip


def page_of(insights: Insights) -> Page:
    return page(insights, agent_names(insights))


def test_the_title_gives_the_result_and_n() -> None:
    said = page_of(a_run())

    assert said.title == (
        "190 of 192 rollouts of 24 tasks scored: mean reward 0.545 (95\u00a0% interval"
        " 0.390 to 0.699); 15 of 24 tasks can teach"
    )
    assert said.subtitle == "rollouts.jsonl, model a-model-8b"


def test_findings_keep_order_and_evidence() -> None:
    cards = page_of(a_run()).cards

    assert [card.severity for card in cards] == ["critical", "warning", "note"]
    assert [card.remedy for card in cards] == [found.remedy for found in FINDINGS]
    assert cards[0].agent == "number_match_agent"
    assert dict(cards[1].evidence)["limit"] == "unknown"
    assert dict(cards[1].evidence)["pass rate"] == "0"


def test_every_headline_number_has_its_n() -> None:
    for figure in page_of(a_run()).key_numbers:
        assert any(letter.isdigit() for letter in figure.basis + figure.spread), figure


@pytest.mark.parametrize(
    "insights",
    [
        insights_of([a_task(index, "a", [0.5] * 4) for index in range(5)]),
        insights_of([a_task(0, "a", [1.0] * 8)]),
        insights_of([a_task(0, "a", [1.0])]),
    ],
    ids=["equal tasks", "one task", "one rollout"],
)
def test_a_word_replaces_plus_minus_zero(
    insights: Insights,
) -> None:
    said = page_of(insights)

    mean = next(figure for figure in said.key_numbers if figure.label == "Mean reward")
    assert mean.spread.startswith("no interval")
    curve = next((chart for chart in said.charts if chart.name == "pass_curve"), None)
    assert curve is None or all("0" not in row[2::2] for row in curve.table.rows)


def test_every_agent_has_its_plots() -> None:
    said = page_of(a_run())

    assert [chart.name for chart in said.charts] == PLOTS
    assert said.absent == ()
    for chart in said.charts:
        assert chart.title
        assert chart.caption.endswith(".")
        assert chart.axes.startswith("Across: ")
        assert chart.table.rows
        assert {len(row) for row in chart.table.rows} == {len(chart.table.head)}


@pytest.mark.parametrize("tasks", [0, 3])
def test_the_page_says_what_it_cannot_draw(tasks: int) -> None:
    rows = [a_task(index, "a", [None] * 4) for index in range(tasks)]

    said = page_of(insights_of(rows, seconds=None))

    assert said.title.endswith("no reward is known")
    assert len(said.charts) + len(said.absent) == len(PLOTS)
    assert [chart.name for chart in said.charts] == ["coverage"] * bool(tasks)
    assert (
        next(f for f in said.key_numbers if f.label == "Mean reward").value == "unknown"
    )


def test_coverage_names_the_worst_agent() -> None:
    tasks = [a_task(0, "whole", [1.0, 0.0]), a_task(1, "half", [1.0, None])]

    charts = page_of(insights_of(tasks)).charts

    chart = next(chart for chart in charts if chart.name == "coverage")
    assert chart.title == "3 of 4 planned rollouts are scored; half lacks most: 1 of 2"
    assert chart.data["agents"] == [["half", 1, 1, 0, 0, 0], ["whole", 2, 0, 0, 0, 0]]


def test_narrow_plots_stand_in_pairs() -> None:
    single = page_of(insights_of([a_task(0, "a", [1.0])])).charts

    width = 0
    for chart in single:
        assert not (chart.is_wide and width % 2)
        width += 2 if chart.is_wide else 1


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return _numbers(list(value.values()))
    if isinstance(value, list | tuple):
        return [number for part in value for number in _numbers(part)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize(
    "insights",
    [*(a_run(reward=scale) for scale in SCALES.values()), a_hostile_run()],
    ids=[*SCALES, "hostile"],
)
def test_only_finite_numbers_are_drawn(insights: Insights) -> None:
    said = page_of(insights)
    columns = rollout_columns(insights)

    drawn = [chart.data for chart in said.charts]
    assert all(math.isfinite(number) for number in _numbers([drawn, columns]))
    json.dumps(asdict(said)).encode()


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=60), st.integers(0, 9))
def test_each_value_is_in_its_bar(values: list[float], steps: int) -> None:
    edges = bars(values, steps)

    extent = edges[-1][1] - edges[0][0]
    assert [left for left, _ in edges] == sorted(left for left, _ in edges)
    for value in values:
        left, right = edges[bar_of(value, edges)]
        assert left - 1e-9 * extent <= value <= right + 1e-9 * extent


def test_eighths_have_nine_bars() -> None:
    values = [k / 8 for k in range(9)] * 10 + [3 / 7]

    edges = bars(values, 8)

    assert [(left + right) / 2 for left, right in edges] == [k / 8 for k in range(9)]


def test_a_range_beyond_floats_has_no_bars() -> None:
    assert bars([-1.7e308, 1.7e308]) == []
    assert bars([]) == []


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(st.floats(1, 5000), st.floats(-2, 2), st.integers(0, 1)), min_size=1
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_thinning_keeps_every_point(
    rows: list[tuple[float, float, int]],
    is_log: bool,  # noqa: FBT001
    luck: random.Random,
) -> None:
    points = [Point(*row) for row in rows] * (MOST_POINTS // len(rows) + 1)
    shuffled = luck.sample(points, len(points))

    few = thinned(points, is_log=is_log)

    assert sum(point.amount for point in few) == len(points)
    assert len(few) <= max(2 * 56 * 28, MOST_POINTS)
    assert few == thinned(shuffled, is_log=is_log)


def test_task_columns_are_of_one_length() -> None:
    insights = insights_of(
        [
            a_task(0, "a", [1.0, None, 0.0], label="first"),
            a_task("name", "b", [None, None]),
        ]
    )

    columns = task_columns(insights, agent_names(insights))

    lengths = {
        name: len(column)
        for name, column in columns.items()
        if isinstance(column, list | str) and name != "agents"
    }
    assert set(lengths.values()) == {2}
    assert columns["mean"] == [0.5, None]
    assert columns["pass_rate"] == [0.5, None]
    assert columns["label"] == ["first", None]
    assert columns["class"] == "su"


def test_rollouts_follow_one_another() -> None:
    insights = insights_of(
        [
            a_task(0, "a", [1.0, None], tokens=[4096, None]),
            a_task(1, "a", [0.25], tokens=[10]),
        ]
    )

    assert rollout_columns(insights) == {
        "size": [2, 1], "rollout_index": None, "state": "sus",
        "reward": [1, None, 0.25], "output_tokens": [4096, None, 10],
        "is_truncated": "y-n", "is_empty": "nnn", "attempts": [0, 0, 0],
    }  # fmt: skip


def test_too_large_numbers_become_text() -> None:
    insights = insights_of([a_task(2**60, "a", [1.0]), a_task(2**60 + 1, "a", [1.0])])

    columns = task_columns(insights, agent_names(insights))

    assert columns["task_index"] == [str(2**60), str(2**60 + 1)]


def test_unlisted_rollouts_are_drawn_by_task() -> None:
    whole = a_run()
    bare = replace(
        whole,
        has_rollouts=False,
        tasks=tuple(replace(task, rollouts=None) for task in whole.tasks),
    )

    chart = next(chart for chart in page_of(bare).charts if chart.name == "length")

    assert rollout_columns(bare) is None
    assert len(chart.data["points"]) == len(whole.tasks)
    assert "do not list rollouts" in chart.caption


@pytest.mark.parametrize("scale", [lambda r: r, lambda r: 2 * r - 1])
def test_title_intervals_follow_the_scale(
    scale: Callable[[float], float],
) -> None:
    insights = a_run(reward=scale)
    low = insights.run.reward.interval

    assert low is not None
    assert f"{low.low:.3f}".replace("-", "\u2212") in page_of(insights).title
