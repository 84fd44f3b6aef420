"""Lines: tables and paragraphs under a label."""

from rich.cells import cell_len

from reward_profiling.cli.terminal.lines import StyledLine, labelled_lines, table_lines


def texts(lines: list[StyledLine]) -> list[str]:
    return [line.label + line.text for line in lines]


def test_names_go_left_and_numbers_right() -> None:
    shown = list(table_lines(("file", "lines"), [("a.jsonl", "3"), ("b", "12")], 80))

    assert texts(shown) == ["  file     lines", "  a.jsonl      3", "  b           12"]
    assert [line.style for line in shown] == ["bold", "", ""]


def test_gaps_shrink_before_text_is_cut() -> None:
    assert (
        texts(list(table_lines(("a", "b"), [("xxxx", "yyyy")], 9)))[1] == " xxxx yyyy"
    )


def test_prose_takes_the_space_cells_leave() -> None:
    rows = [("1", "日本語の長い文章です"), ("2", "short")]

    wide, short = list(table_lines(("task", "input"), rows, 20, last_is_prose=True))[1:]

    assert wide.text == "  1     日本語の長…"
    assert cell_len(wide.text) <= 20
    assert short.text == "  2     short"


def test_a_paragraph_stands_beside_its_label() -> None:
    label = StyledLine(" note   ", "cyan")

    shown = list(labelled_lines(label, "one two three four five six", 28, "dim"))

    assert texts(shown) == [" note   one two three four", "        five six"]
    assert [line.label_style for line in shown] == ["cyan", ""]
    assert {line.style for line in shown} == {"dim"}
