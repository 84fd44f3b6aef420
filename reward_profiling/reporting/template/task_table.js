"use strict";
/* The table of tasks: only the rows in view are in the page, so that 50,000 stay usable.
   Text from the data only ever becomes text, never markup. */
function taskTable(data, readRollouts) {
  const UNKNOWN = "–";
  const CLASS = { n: "never", s: "sometimes", a: "always", u: "undetermined" };
  const STATE = { s: "scored", u: "no usable reward", m: "masked", f: "failed", x: "missing" };
  const FLAG = { y: "yes", n: "no", "-": UNKNOWN };
  const PRINTED = 300;
  const SPARE = 6;
  const byId = (id) => document.getElementById(id);
  const hasLabels = data.label !== null;
  const hasAgents = data.agents.length > 1;

  const { number, percent, whole } = figures;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const classOf = (task) => CLASS[data.class[task]];
  const agentOf = (task) => data.agents[data.agent[task]];
  const idOf = (task) => `${data.task_index[task]}~${agentOf(task)}`;

  /* Orders: what a task is sorted by, and which end comes first. */
  const lacking = (task) => data.planned[task] - data.scored[task];
  const ORDERS = {
    task: ["task", (task) => task, 1],
    pass_rate: ["pass rate", (task) => data.pass_rate[task], 1],
    mean: ["mean reward", (task) => data.mean[task], 1],
    std: ["spread", (task) => data.std[task], -1],
    tokens: ["output tokens", (task) => data.mean_tokens[task], -1],
    cut: ["cut off", (task) => data.truncated[task], -1],
    lacking: ["lacking rollouts", lacking, -1],
    rank: ["informativeness", (task) => data.rank[task], 1],
  };

  function passes(task) {
    const cell = element("span", "cell of-passes");
    const row = element("span", `passes ${classOf(task)}`);
    row.append(element("span", "count", data.scored[task] ? `${data.passed[task]} of ${data.scored[task]}` : UNKNOWN));
    const scale = element("span", "scale");
    if (data.low[task] !== null && data.high[task] !== null) {
      const bar = scale.appendChild(element("i"));
      bar.style.left = `${100 * data.low[task]}%`;
      bar.style.width = `${100 * (data.high[task] - data.low[task])}%`;
    }
    if (data.pass_rate[task] !== null) {
      scale.appendChild(element("b")).style.left = `${100 * data.pass_rate[task]}%`;
    }
    row.append(scale);
    cell.append(row);
    return cell;
  }

  function named(task) {
    const cell = element("span", "cell name");
    const button = element("button", "task");
    button.type = "button";
    button.append(element("bdi", "", String(data.task_index[task])));
    cell.append(button);
    return cell;
  }

  function text(task) {
    const cell = element("span", "cell text");
    const label = hasLabels ? data.label[task] : null;
    cell.append(element("bdi", "", label ?? (hasAgents ? agentOf(task) : "")));
    return cell;
  }

  function agent(task) {
    const cell = element("span", "cell");
    cell.append(element("bdi", "", agentOf(task)));
    return cell;
  }

  function shownClass(task) {
    const cell = element("span", "cell of-class");
    const made = element("span", `class ${classOf(task)}`);
    made.append(element("span", "key"), classOf(task));
    cell.append(made);
    return cell;
  }

  const end = (said) => (task) => element("span", "cell end", said(task));
  const someAre = (value) => data.class.length && Array.from(data.class).some((_, task) => value(task));
  const COLUMNS = [
    ["task", "task", "minmax(60px, 76px)", named],
    ...(hasAgents ? [["agent", null, "minmax(70px, 164px)", agent]] : []),
    ...(hasLabels ? [["text", null, "minmax(90px, 1fr)", text]] : []),
    ["class", null, "104px", shownClass],
    ["passed", "pass_rate", hasLabels ? "148px" : "minmax(148px, 1fr)", passes],
    ["mean", "mean", "62px", end((task) => number(data.mean[task]))],
    ["std", "std", "56px", end((task) => number(data.std[task]))],
    ["tokens", "tokens", "64px", end((task) => number(data.mean_tokens[task]))],
    ...(someAre((task) => data.truncated[task]) ? [["cut off", "cut", "56px", end((task) => String(data.truncated[task]))]] : []),
    ...(someAre(lacking) ? [["lacking", "lacking", "60px", end((task) => String(lacking(task)))]] : []),
  ];

  /* What is asked for; it stands in the address, so that a link shows the same. */
  const state = { q: "", classes: new Set(), agent: "", order: "task", turned: false, open: "" };

  function readAddress() {
    const [, query] = location.hash.split("?", 2);
    const asked = new URLSearchParams(location.hash.startsWith("#tasks?") ? query : "");
    const known = Object.values(CLASS);
    state.q = asked.get("q") ?? "";
    state.classes = new Set((asked.get("class") ?? "").split(",").filter((name) => known.includes(name)));
    state.agent = data.agents.includes(asked.get("agent")) ? asked.get("agent") : "";
    state.order = Object.hasOwn(ORDERS, asked.get("order") ?? "") ? asked.get("order") : "task";
    state.turned = asked.get("turned") === "1";
    state.open = asked.get("open") ?? "";
  }

  function writeAddress() {
    const asked = new URLSearchParams();
    if (state.q) asked.set("q", state.q);
    if (state.classes.size) asked.set("class", [...state.classes].join(","));
    if (state.agent) asked.set("agent", state.agent);
    if (state.order !== "task") asked.set("order", state.order);
    if (state.turned) asked.set("turned", "1");
    if (state.open) asked.set("open", state.open);
    const said = asked.toString();
    try {
      history.replaceState(null, "", said ? `#tasks?${said}` : "#tasks");
    } catch { /* a page in a sandbox has no address of its own */ }
  }

  let haystack = null;
  function searched() {
    haystack ??= Array.from({ length: data.num_tasks }, (_, task) =>
      `${data.task_index[task]}\n${agentOf(task)}\n${hasLabels ? data.label[task] ?? "" : ""}`.toLowerCase());
    return haystack;
  }

  /* "#7" is task 7 alone; any other word may stand anywhere. */
  const holds = (task, text, word) => text.includes(word)
    || (word[0] === "#" && String(data.task_index[task]).toLowerCase() === word.slice(1));

  function found() {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = words.length ? searched() : null;
    const wanted = state.agent ? data.agents.indexOf(state.agent) : -1;
    const kept = [];
    for (let task = 0; task < data.num_tasks; task += 1) {
      if (wanted >= 0 && data.agent[task] !== wanted) continue;
      if (state.classes.size && !state.classes.has(classOf(task))) continue;
      if (texts && !words.every((word) => holds(task, texts[task], word))) continue;
      kept.push(task);
    }
    return sorted(kept);
  }

  /* What is unknown stands last whichever way the order is turned; ties by place. */
  function sorted(kept) {
    const [, value, natural] = ORDERS[state.order];
    const way = state.turned ? -natural : natural;
    const known = kept.filter((task) => value(task) !== null);
    const unknown = kept.filter((task) => value(task) === null);
    known.sort((one, other) => way * (value(one) - value(other)) || one - other);
    return known.concat(unknown);
  }

  const rows = byId("rows");
  const space = rows.appendChild(element("div"));
  space.id = "space";
  let tasks = [];
  let height = 38;
  let openAt = -1;
  let openHeight = 0;
  let detail = null;
  let isPrinting = false;
  const live = new Map();

  const topOf = (place) => place * height + (openAt >= 0 && place > openAt ? openHeight : 0);
  function placeAt(offset) {
    if (openAt < 0 || offset < topOf(openAt) + height) return Math.floor(offset / height);
    return Math.max(openAt, Math.floor((offset - openHeight) / height));
  }

  function makeRow(place) {
    const task = tasks[place];
    const row = element("div", "row");
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", String(place + 2));
    for (const [, , , cell] of COLUMNS) {
      const made = cell(task);
      made.setAttribute("role", "cell");
      row.append(made);
    }
    row.querySelector(".task").setAttribute("aria-label", `Task ${data.task_index[task]}: show its rollouts`);
    row.addEventListener("click", () => toggle(place));
    return row;
  }

  function mark(row, place) {
    row.classList.toggle("is-open", place === openAt);
    row.querySelector(".task").setAttribute("aria-expanded", String(place === openAt));
    row.style.top = `${topOf(place)}px`;
  }

  function render() {
    const [from, to] = isPrinting
      ? [0, Math.min(tasks.length, PRINTED)]
      : [
          Math.max(placeAt(rows.scrollTop) - SPARE, 0),
          Math.min(placeAt(rows.scrollTop + rows.clientHeight) + SPARE + 1, tasks.length),
        ];
    for (const [place, row] of live) {
      if (place < from || place >= to) {
        row.remove();
        live.delete(place);
      }
    }
    let before = null;
    for (let place = from; place < to; place += 1) {
      let row = live.get(place);
      if (!row) {
        row = makeRow(place);
        live.set(place, row);
        if (before) before.after(row);
        else space.prepend(row);
      }
      mark(row, place);
      before = row;
      if (place === openAt && detail) {
        row.after(detail);
        detail.style.top = `${topOf(place) + height}px`;
        before = detail;
      }
    }
    if (detail && (openAt < from || openAt >= to)) detail.remove();
  }

  function layout() {
    height = parseFloat(getComputedStyle(rows).getPropertyValue("--row")) || 38;
    space.style.height = `${tasks.length * height + (openAt >= 0 ? openHeight : 0)}px`;
    rows.style.maxHeight = tasks.length <= 40 ? "none" : "";
    render();
  }

  function close() {
    detail?.remove();
    detail = null;
    openAt = -1;
    openHeight = 0;
  }

  async function toggle(place) {
    const task = tasks[place];
    const wasOpen = place === openAt;
    close();
    state.open = wasOpen ? "" : idOf(task);
    writeAddress();
    layout();
    if (!wasOpen) await show(place);
  }

  let rollouts = null;
  async function show(place) {
    const task = tasks[place];
    openAt = place;
    detail = element("div", "detail");
    detail.setAttribute("role", "row");
    const cell = detail.appendChild(element("div"));
    cell.setAttribute("role", "cell");
    summaryOf(task).forEach((line) => cell.append(line));
    layout();
    measure();
    rollouts ??= await readRollouts().then(withStarts);
    cell.append(rolloutsOf(task));
    measure();
  }

  function measure() {
    if (!detail) return;
    openHeight = detail.offsetHeight;
    layout();
  }

  function withStarts(columns) {
    if (!columns) return { size: null };
    let start = 0;
    return { ...columns, start: columns.size.map((size) => { start += size; return start - size; }) };
  }

  function summaryOf(task) {
    const lines = [];
    if (hasLabels && data.label[task]) {
      const label = element("p", "label", data.label[task]);
      label.dir = "auto";
      lines.push(label);
    }
    const n = data.scored[task];
    const said = [`${agentOf(task)}: ${n} of ${data.planned[task]} planned rollouts scored`];
    for (const [name, words] of [["unscored", "without a usable reward"], ["masked", "masked"], ["failed", "failed"], ["missing", "missing"]]) {
      if (data[name][task]) said.push(`${data[name][task]} ${words}`);
    }
    lines.push(element("p", "soft", `${said.join(", ")}.`));
    if (n) lines.push(element("p", "", rewardOf(task, n)));
    return lines;
  }

  function rewardOf(task, n) {
    const spread = data.std[task] ? `, std ${number(data.std[task])}` : "";
    const parts = [`Mean reward ${number(data.mean[task])}${spread} (n = ${n}), from ${number(data.min[task])} to ${number(data.max[task])}`];
    const bounds = data.low[task] === null ? "" : `, interval ${percent(data.low[task])} to ${percent(data.high[task])}`;
    parts.push(`passed ${data.passed[task]} of ${n}${bounds}`);
    if (data.upper_bound[task] !== null) parts.push(`never passed, but its pass rate may be up to ${percent(data.upper_bound[task])}`);
    if (data.lower_bound[task] !== null) parts.push(`always passed, so its pass rate is at least ${percent(data.lower_bound[task])}`);
    if (data.rank[task] !== null) parts.push(`rank ${number(data.rank[task])} by informativeness`);
    if (data.distinct_answers[task] !== null) parts.push(`${data.distinct_answers[task]} different answers`);
    return `${parts.join("; ")}.`;
  }

  function rolloutsOf(task) {
    if (!rollouts.size || !rollouts.size[task]) {
      return element("p", "soft", "The insights of this run do not list rollouts; the rollouts file has them.");
    }
    const box = element("div", "wide");
    const table = box.appendChild(element("table"));
    const head = table.createTHead().insertRow();
    ["rollout", "state", "reward", "output tokens", "cut off", "empty", "failed attempts"].forEach((name, index) => {
      const cell = head.appendChild(element("th", index > 1 ? "num" : "", name));
      cell.scope = "col";
    });
    const body = table.createTBody();
    const first = rollouts.start[task];
    for (let place = 0; place < rollouts.size[task]; place += 1) {
      const at = first + place;
      const cells = [
        rollouts.rollout_index ? String(rollouts.rollout_index[at]) : String(place),
        STATE[rollouts.state[at]],
        number(rollouts.reward[at]),
        number(rollouts.output_tokens[at]),
        FLAG[rollouts.is_truncated[at]],
        FLAG[rollouts.is_empty[at]],
        String(rollouts.attempts[at]),
      ];
      const row = body.insertRow();
      cells.forEach((said, index) => row.append(element("td", index > 1 ? "num" : "", said)));
    }
    return box;
  }

  function headings() {
    const head = byId("head");
    head.replaceChildren();
    byId("grid").style.setProperty("--columns", COLUMNS.map(([, , width]) => width).join(" "));
    for (const [name, order] of COLUMNS) {
      const isEnd = ["mean", "std", "tokens", "cut off", "lacking"].includes(name);
      const cell = element("span", isEnd ? "cell end" : "cell");
      cell.setAttribute("role", "columnheader");
      if (order === null) cell.textContent = name;
      else {
        const isOrder = state.order === order;
        const isUp = ORDERS[order][2] > 0 !== state.turned;
        const button = element("button", "", name + (isOrder ? (isUp ? " ↑" : " ↓") : ""));
        button.type = "button";
        button.addEventListener("click", () => {
          state.turned = isOrder && !state.turned;
          state.order = order;
          update();
          head.querySelectorAll("button")[[...head.children].filter((one) => one.firstElementChild).indexOf(cell)]?.focus();
        });
        if (isOrder) cell.setAttribute("aria-sort", isUp ? "ascending" : "descending");
        cell.append(button);
      }
      head.append(cell);
    }
  }

  function showFound() {
    const shown = tasks.length === data.num_tasks
      ? `All ${whole(data.num_tasks)} ${data.num_tasks === 1 ? "task" : "tasks"}`
      : `${whole(tasks.length)} of ${whole(data.num_tasks)} tasks`;
    byId("found").textContent = isPrinting && tasks.length > PRINTED
      ? `${shown}; the first ${PRINTED} are printed.`
      : `${shown}. Select a row to see its rollouts.`;
  }

  /* Find, sort and show again; scrolls back to the first row. */
  function refresh() {
    close();
    for (const row of live.values()) row.remove();
    live.clear();
    tasks = found();
    rows.scrollTop = 0;
    space.querySelector(".empty")?.remove();
    if (!tasks.length) space.append(element("p", "empty", "No task matches."));
    byId("grid").setAttribute("aria-rowcount", String(tasks.length + 1));
    headings();
    showFound();
    layout();
    if (!tasks.length) space.style.height = "58px";
  }

  function update() {
    state.open = "";
    refresh();
    writeAddress();
    fill();
  }

  function showOpen() {
    const place = state.open ? tasks.findIndex((task) => idOf(task) === state.open) : -1;
    if (place < 0) return;
    rows.scrollTop = Math.max(topOf(place) - height, 0);
    show(place);
  }

  function fill() {
    byId("search").value === state.q || (byId("search").value = state.q);
    byId("agent").value = state.agent;
    byId("order").value = state.order;
    byId("direction").textContent = ORDERS[state.order][2] > 0 !== state.turned ? "↑" : "↓";
    for (const box of byId("classes").querySelectorAll("input")) box.checked = state.classes.has(box.value);
  }

  function controls() {
    const counts = {};
    for (const letter of data.class) counts[letter] = (counts[letter] ?? 0) + 1;
    for (const [letter, name] of Object.entries(CLASS)) {
      if (!counts[letter]) continue;
      const label = element("label", `class ${name}`);
      const box = label.appendChild(element("input"));
      box.type = "checkbox";
      box.value = name;
      box.addEventListener("change", () => {
        if (box.checked) state.classes.add(name);
        else state.classes.delete(name);
        update();
      });
      label.append(element("span", "key"), name, element("span", "count", whole(counts[letter])));
      byId("classes").append(label);
    }
    for (const name of data.agents) {
      const option = byId("agent").appendChild(element("option", "", name));
      option.value = name;
    }
    byId("agent-choice").hidden = !hasAgents;
    for (const [name, [words]] of Object.entries(ORDERS)) {
      const option = byId("order").appendChild(element("option", "", words));
      option.value = name;
    }
    byId("agent").addEventListener("change", () => { state.agent = byId("agent").value; update(); });
    byId("order").addEventListener("change", () => { state.order = byId("order").value; state.turned = false; update(); });
    byId("direction").addEventListener("click", () => { state.turned = !state.turned; update(); });
    let waiting = 0;
    byId("search").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { state.q = byId("search").value.trim(); update(); }, 60);
    });
    byId("filter").addEventListener("submit", (event) => event.preventDefault());
  }

  function printing(isOn) {
    isPrinting = isOn;
    showFound();
    render();
  }

  function fromAddress() {
    readAddress();
    refresh();
    fill();
    showOpen();
  }

  setTimeout(searched, 300); // ready before the first key
  byId("task-count").textContent = whole(data.num_tasks);
  controls();
  byId("filter").hidden = false;
  byId("grid").hidden = false;
  fromAddress();
  if (location.hash.startsWith("#tasks?")) byId("tasks").scrollIntoView();
  rows.addEventListener("scroll", render, { passive: true });
  new ResizeObserver(() => { if (detail) measure(); else layout(); }).observe(rows);
  addEventListener("hashchange", () => { if (location.hash.startsWith("#tasks?")) fromAddress(); });
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
}
