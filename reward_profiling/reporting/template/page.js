"use strict";
/* Puts the page together: its theme, its plots, its table of tasks. */
(() => {
  const byId = (id) => document.getElementById(id);

  /* Where storage is not allowed, the theme lasts as long as the page. */
  function stored(value) {
    try {
      if (value === undefined) return localStorage.getItem("reward-report-theme");
      localStorage.setItem("reward-report-theme", value);
    } catch { /* a private window, or a page in a sandbox */ }
    return null;
  }

  function themes() {
    const names = ["system", "light", "dark"];
    const button = byId("theme");
    let chosen = names.includes(stored()) ? stored() : "system";
    const show = () => {
      if (chosen === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = chosen;
      button.textContent = `Theme: ${chosen}`;
    };
    button.addEventListener("click", () => {
      chosen = names[(names.indexOf(chosen) + 1) % names.length];
      stored(chosen);
      show();
    });
    button.hidden = false;
    show();
  }

  function drawOne(place, data) {
    const width = Math.floor(place.clientWidth);
    if (width < 40 || place.drawn === width) return;
    place.drawn = width;
    try {
      place.replaceChildren(charts[place.dataset.chart](data, width, place.dataset.label));
    } catch (error) {
      const note = document.createElement("p");
      note.className = "aside";
      note.textContent = "This plot cannot be drawn here; the table below has its numbers.";
      place.replaceChildren(note);
      console.error(error);
    }
  }

  function drawAll() {
    const data = JSON.parse(byId("charts").textContent);
    const draw = (place) => drawOne(place, data[place.dataset.chart]);
    const places = [...document.querySelectorAll(".plot")];
    const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));
    places.forEach((place) => { draw(place); watch.observe(place); });
  }

  async function unpacked(id) {
    const letters = atob(byId(id).textContent);
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  themes();
  drawAll();
  unpacked("task-data")
    .then((tasks) => taskTable(tasks, () => unpacked("rollout-data")))
    .catch((error) => {
      byId("found").textContent = "This browser cannot unpack the table of tasks; a newer one can.";
      console.error(error);
    })
    .finally(() => { document.documentElement.dataset.ready = "yes"; });
})();
