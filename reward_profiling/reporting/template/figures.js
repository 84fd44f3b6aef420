"use strict";
/* Numbers and shares as `numerics/figures.py` writes them; a test compares the two. */
const figures = (() => {
  const UNKNOWN = "–";
  const places = (size) => (size < 10 ? 3 : size < 100 ? 2 : size < 10000 ? 1 : 0);
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const isUnknown = (value) => value === null || value === undefined;

  function plain(value, size) {
    if (size && (size < 1e-4 || size >= 1e7)) return value.toExponential(2).replace("e+", "e");
    if (Number.isInteger(value)) return whole.format(value);
    if (size < 1e-3) return `${+value.toPrecision(3)}`;
    const digits = places(size);
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  function number(value) {
    if (isUnknown(value)) return UNKNOWN;
    return plain(value + 0, Math.abs(value)).replace(/-/g, "\u2212");
  }

  function percent(value) {
    if (isUnknown(value)) return UNKNOWN;
    const tenths = Math.floor(1000 * value + 0.5);
    if (value > 0 && tenths < 1) return "under 0.1\u00a0%";
    if (value < 1 && tenths >= 1000) return "over 99.9\u00a0%";
    return `${tenths / 10}\u00a0%`;
  }

  return { number, percent, whole: (value) => whole.format(value) };
})();
