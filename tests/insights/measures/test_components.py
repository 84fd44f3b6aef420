from tests.insights.tables import Rollout, insights


def test_components_differ_at_equal_totals() -> None:
    def parts(*values: float) -> dict[str, float]:
        return dict(zip("abc", values, strict=True))

    found = insights([
        Rollout(2.0, components=parts(0, 1, 1)), Rollout(2.0, components=parts(1, 1, 0))
    ])  # fmt: skip

    signal = found.run.signal
    assert (signal.num_zero_signal, signal.num_signal_in_components_only) == (1, 1)
    told = {
        c.name: (c.mean, c.num_signal, c.num_signal_only_here)
        for c in signal.components
    }
    assert told == {"a": (0.5, 1, 1), "b": (1.0, 0, 0), "c": (0.5, 1, 1)}
    assert "signal_only_in_components" in {f.name for f in found.findings}
