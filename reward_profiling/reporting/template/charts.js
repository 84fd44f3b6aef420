"use strict";
/* The plots. What is drawn, and every word about it, comes from the report; here is
   only how. Each function takes its data and a width in pixels and returns an SVG. */
const charts = (() => {
  const CLASSES = ["never", "sometimes", "always", "undetermined"];
  const STATES = ["scored", "unscored", "masked", "failed", "missing"];
  const colour = (name) => `var(--${name})`;
  const { percent } = figures;

  const whole = (value) => d3.format("~s")(value);
  const wholeTicks = (most) => d3.ticks(0, most, 5).filter(Number.isInteger);

  /* Ticks of a scale of any size: plain, thousands by letters, or powers of ten. */
  function ticks(values) {
    const known = values.filter(Number.isFinite).map(Math.abs);
    const most = Math.max(...known, 0);
    if (most >= 1e15 || (most > 0 && most < 1e-4)) return d3.format("~g");
    return most >= 1e5 ? d3.format("~s") : (value) => d3.format(",")(+value.toPrecision(6));
  }

  function plot(width, label, options) {
    return Plot.plot({
      width,
      marginLeft: 46,
      marginRight: 14,
      marginTop: 22,
      marginBottom: 38,
      style: { fontFamily: "inherit", fontSize: "12px", background: "none" },
      ariaLabel: label,
      ...options,
    });
  }

  /* Ticks along a width, by the room that their words take. */
  function numTicks(values, width) {
    const longest = d3.max(values, (value) => ticks(values)(value).length) ?? 1;
    return Math.max(Math.floor(width / Math.max(80, 9 * longest)), 2);
  }

  /* A scale around the values, with room at both ends; one value stands in its middle. */
  function around(values) {
    const [low, high] = d3.extent(values);
    const room = high > low ? (high - low) * 0.04 : Math.max(Math.abs(low) * 0.5, 0.5);
    return [low - room, high + room];
  }

  function histogram(data, width, label) {
    const rows = [];
    for (const [left, right, ...counts] of data.bars) {
      let top = 0;
      counts.forEach((count, index) => {
        if (count) rows.push({ left, right, from: top, to: top + count, index });
        top += count;
      });
    }
    const marks = [];
    if (data.interval) {
      const [low, high] = data.interval;
      marks.push(Plot.rectX([0], { x1: low, x2: high, fill: "currentColor", fillOpacity: 0.1 }));
    }
    marks.push(
      Plot.rect(rows, {
        x1: "left", x2: "right", y1: "from", y2: "to",
        fill: (row) => colour(CLASSES[row.index]), insetLeft: 0.5, insetRight: 0.5,
      }),
      Plot.ruleY([0], { stroke: "currentColor" }),
    );
    if (data.mean !== null) {
      marks.push(
        Plot.ruleX([data.mean], { stroke: "var(--ink)", strokeWidth: 1.5 }),
        Plot.text([data.mean], {
          x: (x) => x, frameAnchor: "top", dy: -16, text: () => "mean", fill: "var(--ink)",
        }),
      );
    }
    const ends = data.bars.flatMap(([left, right]) => [left, right]);
    return plot(width, label, {
      height: 250,
      x: { label: "mean reward of a task", domain: around(data.bars.length > 1 ? ends : [d3.mean(ends)]),
        tickFormat: ticks(ends), ticks: numTicks(ends, width) },
      y: { label: "tasks", grid: true, ticks: wholeTicks(d3.max(rows, (row) => row.to)), tickFormat: whole },
      marks,
    });
  }

  function passRates(data, width, label) {
    const rows = data.tasks.map(([place, rate, low, high, index, words]) => ({
      place, rate, low, high, words, fill: colour(CLASSES[index]),
    }));
    const bounded = rows.filter((row) => row.low !== null && row.high !== null);
    const last = rows.length ? rows[rows.length - 1].place : 1;
    const marks = data.is_each
      ? [
          Plot.ruleX(bounded, { x: "place", y1: "low", y2: "high", stroke: "fill",
            strokeWidth: Math.min(Math.max(width / rows.length / 4, 1), 5), strokeOpacity: 0.35 }),
          Plot.dot(rows, { x: "place", y: "rate", fill: "fill",
            r: Math.min(Math.max(width / rows.length / 4, 1.6), 4.5) }),
        ]
      : [
          Plot.areaY(bounded, { x: "place", y1: "low", y2: "high", fill: "currentColor", fillOpacity: 0.16 }),
          Plot.dot(rows, { x: "place", y: "rate", fill: "fill", r: 1.8 }),
        ];
    return plot(width, label, {
      height: 270,
      x: { label: "tasks, in order of pass rate", domain: [0.4, Math.max(last, 1) + 0.6],
        tickFormat: (value) => (Number.isInteger(value) && value > 0 ? d3.format(",")(value) : ""),
        ticks: Math.min(Math.max(Math.floor(width / 90), 2), rows.length) },
      y: { label: "pass rate", domain: [0, 1], grid: true, ticks: 5, tickFormat: percent },
      marks: [
        Plot.ruleY([0], { stroke: "currentColor" }),
        ...marks,
        Plot.tip(rows, Plot.pointerX({ x: "place", y: "rate", title: "words" })),
      ],
    });
  }

  /* Positions of ticks that do not run into each other, the last one always there. */
  function spaced(values, place, gap) {
    const kept = [];
    for (const value of [...values].reverse()) {
      if (!kept.length || place(kept[kept.length - 1]) - place(value) >= gap) kept.push(value);
    }
    return kept.reverse();
  }

  function passCurve(data, width, label) {
    const points = data.points.map(([k, at, atError, hat, hatError, n]) => ({ k, at, atError, hat, hatError, n }));
    const ks = points.map((point) => point.k);
    const [first, last] = [ks[0], ks[ks.length - 1]];
    const isLog = last > 16;
    const along = (k) => (last === first ? 0 : isLog
      ? Math.log(k / first) / Math.log(last / first)
      : (k - first) / (last - first)) * (width - 110);
    const n = new Map(points.map((point) => [point.k, point.n]));
    const changes = new Set(n.values()).size > 1;
    const longest = d3.max(n.values(), (amount) => d3.format(",")(amount).length);
    const isRound = (k) => !isLog || k === last || Number.isInteger(Math.log2(k));
    const shown = spaced(ks.filter(isRound), along, changes ? 26 + 7 * longest : 24);
    const isClose = points[points.length - 1].at - points[points.length - 1].hat < 0.08;
    const lines = [["at", "sometimes", "pass@k"], ["hat", "never", "pass^k"]];
    return plot(width, label, {
      height: 262,
      marginRight: 62,
      marginBottom: changes ? 58 : 38,
      x: { type: isLog ? "log" : "linear", base: 2, domain: first === last ? [0.5, 1.5] : [first, last],
        label: changes ? "tries k; n tasks beneath" : "tries k" },
      y: { label: "share of tasks", domain: [0, 1], grid: true, ticks: 5, tickFormat: percent },
      marks: [
        Plot.axisX(shown, { tickFormat: (k) => (changes ? `${k}\nn ${d3.format(",")(n.get(k))}` : `${k}`), lineHeight: 1.25,
          label: changes ? "tries k; n tasks beneath" : "tries k", labelOffset: changes ? 52 : undefined }),
        Plot.ruleY([0], { stroke: "currentColor" }),
        lines.map(([name, key]) => Plot.areaY(points.filter((point) => point[`${name}Error`]), {
          x: "k", fill: colour(key), fillOpacity: 0.14,
          y1: (point) => Math.max(point[name] - point[`${name}Error`], 0),
          y2: (point) => Math.min(point[name] + point[`${name}Error`], 1),
        })),
        lines.map(([name, key]) => [
          Plot.lineY(points, { x: "k", y: name, stroke: colour(key), strokeWidth: 2,
            strokeDasharray: name === "hat" ? "5 3" : undefined }),
          Plot.dot(points, { x: "k", y: name, fill: colour(key), r: 2.6 }),
        ]),
        lines.map(([name, key, words]) => Plot.text(points.slice(-1), {
          x: "k", y: name, dx: 8, dy: isClose ? (name === "at" ? -7 : 8) : 0, textAnchor: "start", fill: colour(key), fontWeight: 600,
          text: () => words,
        })),
        Plot.tip(points, Plot.pointerX({ x: "k", y: "at",
          title: (point) => `k ${point.k}: pass@k ${percent(point.at)}, pass^k ${percent(point.hat)}, n ${point.n}` })),
      ],
    });
  }

  function groups(data, width, label) {
    const rows = data.groups.map(([size, useful, mixed, known, plugUseful, plugMixed, plug]) => ({
      size: String(size), useful, mixed, known, plugUseful, plugMixed, plug,
    }));
    const dots = [];
    for (const row of rows) {
      for (const [name, plugName, key, dy] of [["useful", "plugUseful", "sometimes", -12], ["mixed", "plugMixed", "never", 14]]) {
        const isKnown = row[name] !== null;
        const y = isKnown ? row[name] : row[plugName];
        if (y !== null) dots.push({ size: row.size, y, isKnown, key, dy });
      }
    }
    // What was counted and what was guessed are different estimates: no line joins them.
    const lines = d3.groups(dots, (dot) => `${dot.key} ${dot.isKnown}`).map(([, list]) =>
      Plot.lineY(list, { x: "size", y: "y", stroke: colour(list[0].key), strokeWidth: 1.5, strokeOpacity: 0.5,
        strokeDasharray: list[0].isKnown ? undefined : "4 3" }));
    const of = new Map(rows.map((row) => [row.size, row.useful !== null ? row.known : row.plug]));
    return plot(width, label, {
      height: 262,
      marginBottom: 58,
      x: { type: "point", domain: rows.map((row) => row.size), padding: 0.4 },
      y: { label: "share of groups", domain: [0, 1], grid: true, ticks: 5, tickFormat: percent },
      marks: [
        Plot.axisX({ tickFormat: (size) => `${size}\nn ${d3.format(",")(of.get(size))}`, lineHeight: 1.25,
          label: "rollouts in a group; n tasks beneath →", labelAnchor: "right", labelArrow: "none", labelOffset: 52 }),
        Plot.ruleY([0], { stroke: "currentColor" }),
        lines,
        Plot.dot(dots, { x: "size", y: "y", r: 4.5, strokeWidth: 2, stroke: (dot) => colour(dot.key),
          fill: (dot) => (dot.isKnown ? colour(dot.key) : "var(--panel)") }),
        [-12, 14].map((dy) => Plot.text(dots.filter((dot) => dot.dy === dy), {
          x: "size", y: "y", dy, fill: "var(--ink)", text: (dot) => percent(dot.y),
          stroke: "var(--panel)", strokeWidth: 4 })),
      ],
    });
  }

  function coverage(data, width, label) {
    const rows = [];
    const names = data.agents.map(([name, ...counts], row) => {
      const planned = d3.sum(counts);
      let from = 0;
      counts.forEach((count, index) => {
        if (count) rows.push({ row, from: from / planned, to: (from + count) / planned, fill: colour(STATES[index]) });
        from += count;
      });
      const scored = `${d3.format(",")(counts[0])} of ${d3.format(",")(planned)}`;
      return { row, name, scored };
    });
    return plot(width, label, {
      height: 46 + 40 * names.length,
      marginLeft: 2,
      marginTop: 4,
      x: { label: "share of the planned rollouts", domain: [0, 1], ticks: 5, tickFormat: percent },
      y: { axis: null, domain: names.map(({ row }) => row), padding: 0 },
      marks: [
        Plot.barX(rows, { y: "row", x1: "from", x2: "to", fill: "fill", insetTop: 22, insetBottom: 4, insetRight: 0.5 }),
        Plot.text(names, { y: "row", x: 0, dy: -9, textAnchor: "start", fill: "var(--ink)", text: "name",
          lineWidth: (width - 130) / 12, textOverflow: "ellipsis-middle" }),
        Plot.text(names, { y: "row", x: 1, dy: -9, textAnchor: "end", text: "scored" }),
      ],
    });
  }

  function length(data, width, label) {
    const rows = data.points.map(([x, y, kind, count]) => ({ x, y, kind, count }));
    const most = d3.max(rows, (row) => row.count);
    const radius = (row) => (most === 1 ? 3.2 : 1.6 + 8 * Math.sqrt(row.count / most));
    const values = rows.map((row) => row.y);
    const parts = data.parts.map(([x, y]) => ({ x, y }));
    const words = (row) => `${d3.format(",.0f")(row.x)} tokens, reward ${+row.y.toPrecision(4)}`
      + (row.kind ? ", cut off" : "") + (row.count > 1 ? `: ${d3.format(",")(row.count)} of them` : "");
    return plot(width, label, {
      height: 300,
      x: { type: data.is_log ? "log" : "linear", label: "output tokens" + (data.is_log ? ", logarithmic" : ""),
        ticks: Math.max(Math.floor(width / 90), 2), tickFormat: ticks(rows.map((row) => row.x)),
        domain: data.is_log ? undefined : around(rows.map((row) => row.x)) },
      y: { label: "reward", grid: true, domain: around(values), ticks: 5, tickFormat: ticks(values) },
      r: { type: "identity" },
      marks: [
        Plot.dot(rows.filter((row) => !row.kind), { x: "x", y: "y", r: radius, fill: colour("sometimes"), fillOpacity: 0.34 }),
        Plot.dot(rows.filter((row) => row.kind), { x: "x", y: "y", r: radius, symbol: "times", stroke: colour("never"), strokeWidth: 1.8 }),
        Plot.lineY(parts, { x: "x", y: "y", stroke: "var(--panel)", strokeWidth: 4, strokeOpacity: 0.8 }),
        Plot.lineY(parts, { x: "x", y: "y", stroke: "var(--ink)", strokeWidth: 1.5 }),
        Plot.dot(parts, { x: "x", y: "y", fill: "var(--ink)", r: 2.6 }),
        Plot.tip(rows, Plot.pointer({ x: "x", y: "y", title: words })),
      ],
    });
  }

  function completion(data, width, label) {
    const rows = [[0, 0], ...data.points].map(([x, y]) => ({ x, y }));
    return plot(width, label, {
      height: 210,
      marginLeft: 52,
      x: { label: `${data.unit} since the start`, ticks: Math.max(Math.floor(width / 80), 2) },
      y: { label: "rollouts finished", grid: true, ticks: wholeTicks(d3.max(rows, (row) => row.y)), tickFormat: whole, zero: true },
      marks: [
        Plot.areaY(rows, { x: "x", y1: 0, y2: "y", curve: "step-after", fill: colour("scored"), fillOpacity: 0.12 }),
        Plot.lineY(rows, { x: "x", y: "y", curve: "step-after", stroke: colour("scored"), strokeWidth: 2 }),
        Plot.ruleY([0], { stroke: "currentColor" }),
      ],
    });
  }

  return { histogram, pass_rates: passRates, pass_curve: passCurve, groups, coverage, length, completion };
})();
