// Charts: an element with data-chart is filled from that address of the API, and again each
// data-every seconds. Colours come from the style sheet, so that they follow the theme.
"use strict";

(() => {
  const charts = new Map();
  const LINES = 6;
  const UNITS = ["", " k", " M", " G"];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const short = (value) => {
    let power = 0;
    while (Math.abs(value) >= 10_000 && power < UNITS.length - 1) {
      value /= 1000;
      power += 1;
    }
    return `${Number(value.toFixed(Math.abs(value) < 10 ? 2 : 1))}${UNITS[power]}`;
  };

  const shown = (value, unit) => {
    if (value == null) return "–";
    return unit === "share" ? `${(value * 100).toFixed(1)} %` : short(value);
  };

  const axis = (more) => ({
    stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif", ...more,
  });

  const optionsOf = (place, answer, names) => {
    const unit = answer.series[0]?.unit ?? "";
    const second = answer.series.some((each) => each.unit !== unit);
    const scale = (each) => (each.unit === unit ? "y" : "z");
    const range = (u, low, high) => [0, high > 0 ? high * 1.1 : 1];
    return {
      width: Math.max(place.clientWidth, 200),
      height: Number(place.dataset.height ?? 220),
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      scales: { y: { range }, z: { range } },
      legend: { live: true },
      series: [
        { label: place.dataset.time, value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" },
        ...answer.series.map((each, number) => ({
          label: names[each.label] ?? each.label,
          scale: scale(each),
          stroke: colour(`--line-${(number % LINES) + 1}`),
          width: 2,
          points: { show: false },
          value: (u, value) => shown(value, each.unit),
        })),
      ],
      axes: [
        axis({ values: [[86400, "{MM}-{DD}", null, null, null, null, null, null, 1], [3600, "{HH}:{mm}", "\n{MM}-{DD}", null, null, null, null, null, 1], [60, "{HH}:{mm}", "\n{MM}-{DD}", null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] }),
        axis({ scale: "y", size: 60, values: (u, ticks) => ticks.map((each) => shown(each, unit)) }),
        ...(second ? [axis({ scale: "z", side: 1, size: 60, grid: { show: false }, values: (u, ticks) => ticks.map(short) })] : []),
      ],
    };
  };

  const pointsOf = (answer) => {
    const count = answer.series[0]?.values.length ?? 0;
    const times = Array.from({ length: count }, (_, at) => (answer.fromMs + at * answer.stepMs) / 1000);
    return [times, ...answer.series.map((each) => each.values)];
  };

  // A point between two gaps has no line: it is shown as a point.
  const draw = (place, answer) => {
    const state = charts.get(place);
    if (!state) return;
    state.answer = answer;
    const note = place.querySelector(".chart-note");
    const isEmpty = answer.series.every((each) => each.values.every((value) => value === null));
    if (note) note.hidden = !isEmpty;
    const labels = answer.series.map((each) => each.label).join("\n");
    if (state.plot && labels === state.labels) {
      state.plot.setData(pointsOf(answer));
      return;
    }
    state.plot?.destroy();
    state.labels = labels;
    state.plot = answer.series.length ? new uPlot(optionsOf(place, answer, JSON.parse(place.dataset.names ?? "{}")), pointsOf(answer), place) : null;
  };

  const load = async (place) => {
    try {
      const reply = await fetch(place.dataset.chart, { headers: { Accept: "application/json" } });
      if (reply.ok) draw(place, await reply.json());
    } catch {
      // The console is away: the chart stays as it was, and the next turn asks again.
    }
  };

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const plot = charts.get(target)?.plot;
      if (plot && target.clientWidth) plot.setSize({ width: target.clientWidth, height: plot.height });
    }
  });

  const begin = (root) => {
    const places = [...(root.matches?.("[data-chart]") ? [root] : []), ...root.querySelectorAll("[data-chart]")];
    for (const place of places) {
      if (charts.has(place)) continue;
      charts.set(place, { plot: null, labels: null, answer: null });
      sizes.observe(place);
      load(place);
      const turn = setInterval(() => {
        if (!place.isConnected) {
          clearInterval(turn);
          charts.get(place)?.plot?.destroy();
          charts.delete(place);
        } else if (!document.hidden) {
          load(place);
        }
      }, 1000 * Number(place.dataset.every ?? 10));
    }
  };

  document.addEventListener("DOMContentLoaded", () => begin(document));
  document.addEventListener("htmx:load", (event) => begin(event.detail.elt));
  document.addEventListener("theme", () => {
    for (const [place, state] of charts) {
      state.labels = null;
      if (state.answer) draw(place, state.answer);
    }
  });

  // Forms with a time zone begin with the reader's own.
  document.addEventListener("DOMContentLoaded", () => {
    for (const field of document.querySelectorAll("input[data-zone]")) {
      field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || field.value;
    }
  });
})();
