// A history graph with its lane titles: the titles are text with the newest numbers, the lines beside them are a canvas.

import { el, setAttribute, setText } from "./dom.js";
import { known, timeOfDay, withUnit } from "./format.js";
import { drawChart } from "./chart.js";
import { reasonText } from "./metrics.js";
import { gapAfter, statistics } from "./series.js";
import { t } from "./i18n.js";

const LANE_HEIGHT = 44;
const LANE_GAP = 10;
const STEP_KEYS = { ArrowLeft: -1, ArrowRight: 1 };

/**
 * How each lane is shown. `metric` names whose reason explains an empty lane; `top` gives the value at the upper edge from the
 * highest value and the source.
 */
const LANES = {
  busy: { metric: () => "gfx_busy", unit: "%", decimals: 0, top: () => 100 },
  vram: { metric: (source) => (source.pool === "unified" ? "unified_used" : "vram_used"), unit: "%", decimals: 0, top: () => 100 },
  power: {
    metric: () => "power_now", unit: "W", decimals: 0,
    top: (highest, source) => (known(source.metrics.power_cap) ? Math.max(source.metrics.power_cap, highest ?? 0) : roundUp(highest, 50)),
  },
  temperature: { metric: () => "temperature_edge", unit: "°C", decimals: 0, top: (highest) => Math.max(100, roundUp(highest, 10)) },
  cpu: { metric: () => "cpu_busy", unit: "%", decimals: 1, top: () => 100 },
  ram: { metric: () => "memory_used", unit: "%", decimals: 1, top: () => 100 },
};

function roundUp(value, step) {
  return Math.max(step, Math.ceil((value ?? 0) / step) * step);
}

/** One graph, of a GPU or of the host. */
export class HistoryGraph {
  /**
   * @param {string} name "0", "1" … or "host"
   * @param {string[]} lanes keys of LANES, in the order of the series' values
   */
  constructor(name, lanes) {
    this.lanes = lanes.map((key) => ({
      key,
      ...LANES[key],
      value: el("span", { class: "lane-value" }),
      title: el("span", { class: "lane-title" }, t(`lane.${key}`)),
      scale: el("span"),
      note: el("div", { class: "lane-note" }),
    }));
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.readout = el("div", { class: "readout", hidden: true });
    this.plot = el("div", { class: "plot", tabindex: "0", role: "img" }, this.canvas, ...this.lanes.map(({ note }) => note), this.readout);
    this.lanes.forEach(({ note }, i) => { note.style.top = `${i * (LANE_HEIGHT + LANE_GAP)}px`; });
    this.axis = el("div", { class: "axis", "aria-hidden": "true" }, el("span"), el("span"));
    const titles = el("div", { class: "lane-titles" }, ...this.lanes.map(({ key, title, value }) => el("div", { class: "lane", "data-lane": key }, title, value)));
    const scales = el("div", { class: "lane-scales", "aria-hidden": "true" }, ...this.lanes.map(({ scale }) => scale));
    this.element = el("figure", { class: "history", "data-testid": `history-${name}`, "data-points": 0 }, titles, this.plot, scales, this.axis);
    this.cursor = null;
    this.#listen();
  }

  #shown = null;

  /**
   * @param {{series: Object, metrics: Object}} source a GPU or the host
   * @param {{from: number, to: number, periodMs: number}} view
   */
  draw(source, view) {
    const points = source.series.between(view.from, view.to);
    const stats = this.lanes.map((lane, i) => statistics(points, i));
    this.#shown = { source, view, points, stats };
    setAttribute(this.element, "data-points", points.length);
    const minutes = (view.to - view.from) / 60e3;
    setText(this.axis.firstChild, t("history.ago", { minutes }));
    setText(this.axis.lastChild, t("history.now"));
    this.#explain();
    this.#paint();
    if (this.cursor === null) setAttribute(this.plot, "aria-label", this.#summary(minutes));
  }

  /**
   * Shows the newest numbers beside the lanes.
   * @param {Array<?number>} values
   */
  showValues(values) {
    this.lanes.forEach((lane, i) => setText(lane.value, withUnit(values[i], lane.unit, lane.decimals)));
  }

  #paint() {
    const { source, view, points, stats } = this.#shown;
    const style = getComputedStyle(this.axis);
    drawChart(this.canvas, {
      lanes: this.lanes.map((lane, i) => {
        const max = lane.top(stats[i].max, source);
        setText(lane.scale, withUnit(max, lane.unit));
        return { colour: getComputedStyle(lane.title).color, max };
      }),
      points,
      from: view.from,
      to: view.to,
      gapMs: gapAfter(points, source.series.sliceMs, view.periodMs),
      cursor: this.#cursorPoint()?.t ?? null,
      ink: { grid: style.borderTopColor, cursor: style.color },
      laneHeight: LANE_HEIGHT,
      laneGap: LANE_GAP,
    });
    this.#showReadout();
  }

  /** A lane without a line says why. */
  #explain() {
    const { source, stats } = this.#shown;
    this.lanes.forEach((lane, i) => setText(lane.note, stats[i].last === null && Object.keys(source.metrics).length > 0 ? reasonText(source, lane.metric(source)) : ""));
  }

  #listen() {
    this.plot.addEventListener("pointermove", (event) => {
      const box = this.plot.getBoundingClientRect();
      this.#moveTo((event.clientX - box.left) / box.width);
    });
    this.plot.addEventListener("pointerleave", () => this.#moveTo(null));
    this.plot.addEventListener("blur", () => this.#moveTo(null));
    this.plot.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#shown && this.#paint()).observe(this.plot);
  }

  #key(event) {
    const points = this.#shown?.points ?? [];
    if (event.key === "Escape") this.#moveTo(null);
    const step = STEP_KEYS[event.key];
    if (!step || points.length === 0) return;
    event.preventDefault();
    const at = points.indexOf(this.#cursorPoint() ?? points.at(-1));
    const next = points[Math.min(points.length - 1, Math.max(0, at + step))];
    const { from, to } = this.#shown.view;
    this.#moveTo((next.t - from) / (to - from));
    setAttribute(this.plot, "aria-label", this.#readoutLines(next).join(", "));
  }

  /** The cursor is a place, not a time: the lines pass under a pointer at rest. */
  #moveTo(place) {
    this.cursor = place;
    if (this.#shown) this.#paint();
  }

  #cursorPoint() {
    if (this.cursor === null) return null;
    const { view, points } = this.#shown;
    const t = view.from + this.cursor * (view.to - view.from);
    let nearest = null;
    for (const point of points) if (!nearest || Math.abs(point.t - t) < Math.abs(nearest.t - t)) nearest = point;
    return nearest;
  }

  #readoutLines(point) {
    const values = this.lanes.map((lane, i) => `${t(`lane.${lane.key}`)} ${withUnit(point.values[i], lane.unit, lane.decimals)}`);
    return [timeOfDay(point.t), ...values];
  }

  #showReadout() {
    const point = this.#cursorPoint();
    this.readout.hidden = !point;
    if (!point) return;
    const lines = this.#readoutLines(point);
    if (this.readout.childElementCount !== lines.length) this.readout.replaceChildren(...lines.map(() => el("div")));
    lines.forEach((line, i) => setText(this.readout.children[i], line));
    const { from, to } = this.#shown.view;
    const width = this.plot.clientWidth;
    const x = ((point.t - from) / (to - from)) * width;
    const left = x > width / 2 ? x - this.readout.offsetWidth - 8 : x + 8;
    this.readout.style.left = `${Math.round(Math.max(0, left))}px`;
  }

  #summary(minutes) {
    const parts = this.lanes.map((lane, i) => {
      const { last, mean, max } = this.#shown.stats[i];
      const number = (value) => withUnit(value, lane.unit, lane.decimals);
      if (!known(last)) return t("history.laneUnknown", { lane: t(`lane.${lane.key}`) });
      return t("history.lane", { lane: t(`lane.${lane.key}`), last: number(last), mean: number(mean), max: number(max) });
    });
    return `${t("history.summary", { minutes })} ${parts.join(" ")}`;
  }
}
