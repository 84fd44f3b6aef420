import sys
from array import array
from hashlib import sha256
from itertools import pairwise

import pytest

from reward_profiling.numerics.student_t import Z_975, t_975

LISTED = 65_536
"""Degrees of freedom up to which SciPy's own values are kept."""

# Two-sided 95 % quantiles as Gym's intervals use them.
KNOWN = {
    1: 12.706204736174694, 2: 4.302652729749462, 3: 3.1824463052837078,
    4: 2.7764451051977934, 5: 2.5705818356363146, 6: 2.4469118511449786,
    7: 2.364624251592784, 8: 2.306004135204166, 9: 2.262157162798205,
    10: 2.228138851986274, 11: 2.200985160091639, 12: 2.1788128296672284,
    13: 2.1603686564627913, 14: 2.144786687917804, 15: 2.131449545559776,
    16: 2.1199052992212546, 17: 2.1098155778333156, 18: 2.1009220402410382,
    19: 2.0930240544083087, 20: 2.085963447265864, 21: 2.0796138447276795,
    22: 2.0738730679040254, 23: 2.0686576104190486, 24: 2.0638985616280245,
    25: 2.0595385527532972, 26: 2.0555294386428735, 27: 2.0518305164802846,
    28: 2.0484071417952454, 29: 2.045229642132703, 30: 2.0422724563012378,
    31: 2.039513446396408, 39: 2.022690920036761, 49: 2.0095752371292392,
    63: 1.998340542520741, 99: 1.9842169515864174, 127: 1.9788195347028539,
    199: 1.9719565442517533, 511: 1.9646172223304033, 999: 1.9623414611334493,
    2049: 1.961122427360842, 4095: 1.9605434621072302, 8999: 1.960227634379777,
    11999: 1.9601617098901556, 32767: 1.960036385350965,
    65535: 1.9600001837358951, 65536: 1.9600001831835292}  # fmt: skip


@pytest.mark.parametrize("degrees", KNOWN)
def test_a_quantile_equals_its_reference(degrees: int) -> None:
    assert t_975(degrees) == KNOWN[degrees]


def test_quantiles_fall_with_more_freedom() -> None:
    found = [t_975(degrees) for degrees in range(1, 2000)]

    assert found == sorted(found, reverse=True)
    assert found[-1] > Z_975


def test_every_quantile_equals_its_reference() -> None:
    found = array("d", map(t_975, range(1, LISTED + 1_001)))

    if sys.byteorder == "big":
        found.byteswap()
    assert sha256(found.tobytes()).hexdigest() == (
        "6f20f3ba7a23ed2093fea7f557e1fa3e8e8672fcbee98a85693821745b48c2ba"
    )


@pytest.mark.parametrize("end", [2_048, LISTED])
def test_quantiles_run_on_past_the_table(end: int) -> None:
    around = [t_975(end + step) for step in (-1, 0, 1, 2)]

    room = 4 * 2.0**-52
    falls = [before - after for before, after in pairwise(around)]
    assert max(falls) - min(falls) < 0.01 * max(falls) + 4 * room


def test_quantile_ends_at_the_normal_one() -> None:
    assert t_975(10**9) == pytest.approx(Z_975, rel=1e-8)
