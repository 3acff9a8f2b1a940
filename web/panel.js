// The panel of details beside a capsule: opened by pointer, focus or tap, filled anew with every sample while it is open.

import { el, setAttribute, setText } from "./dom.js";
import { DASH, known, metricText } from "./format.js";
import { memoryOf, ratio } from "./derive.js";
import { metricLabel, metricValue, panelMetrics, reasonText } from "./metrics.js";
import { askForSpecs, specsOf } from "./specs.js";
import { t } from "./i18n.js";

const EDGE = 8;

/** One panel, shared by all capsules of a bar. */
export class Panel {
  constructor() {
    // As a popover it lies above everything, whatever the page around the capsules clips or stacks.
    this.element = el("div", { id: "gputap-panel", class: "panel", role: "group", "data-testid": "panel", popover: "manual", hidden: true });
    this.anchor = null;
    this.kind = null;
    this.index = null;
  }

  #signature = "";
  #cells = new Map();

  /** @returns {boolean} */
  get open() {
    return this.anchor !== null;
  }

  /**
   * Shows the panel of a capsule.
   * @param {HTMLElement} anchor the capsule
   * @param {string} kind "gpu", "vram", "power", "cpu" or "ram"
   * @param {?number} index of the GPU
   * @param {Object} store
   */
  show(anchor, kind, index, store) {
    if (this.anchor && this.anchor !== anchor) setAttribute(this.anchor, "aria-expanded", "false");
    Object.assign(this, { anchor, kind, index });
    this.#signature = "";
    if (index !== null) askForSpecs(); // shown with the sample after they came
    this.update(store);
    if (!this.open) return;
    this.element.hidden = false;
    if (this.element.isConnected && !this.element.matches(":popover-open")) this.element.showPopover?.();
    setAttribute(anchor, "aria-expanded", "true");
    this.#place();
  }

  /** Follows its capsule when the page scrolls; a capsule that is out of sight needs no panel. */
  follow() {
    if (!this.open) return;
    const { bottom, top } = this.anchor.getBoundingClientRect();
    if (bottom < 0 || top > innerHeight) this.close();
    else this.#place();
  }

  /** Hides it. */
  close() {
    if (!this.open) return;
    setAttribute(this.anchor, "aria-expanded", "false");
    this.anchor = null;
    if (this.element.isConnected && this.element.matches(":popover-open")) this.element.hidePopover?.();
    this.element.hidden = true;
  }

  /**
   * Brings the numbers up to date where it is open.
   * @param {Object} store
   */
  update(store) {
    if (!this.open) return;
    const source = this.index === null ? store.host : store.gpus.find((gpu) => gpu.index === this.index);
    if (!source) {
      this.close();
      return;
    }
    const { rows, absent } = panelMetrics(this.kind, source);
    const signature = JSON.stringify([this.kind, this.index, rows, absent, source.device?.name, source.state, specsOf(source.device)?.name]);
    if (signature !== this.#signature) {
      this.#build(source, rows, absent, store.hello);
      this.#signature = signature;
    }
    this.#fill(source, store.hello);
  }

  #build(source, rows, absent, hello) {
    this.#cells.clear();
    const title = t(`panel.${this.kind}`);
    setAttribute(this.element, "aria-label", title);
    setAttribute(this.element, "data-kind", this.kind);
    setAttribute(this.element, "data-gpu", this.index);
    const children = [this.#heading(title, source, hello)];
    const list = el("dl", { class: "rows" });
    for (const name of [...derivedRows(this.kind), ...rows]) list.append(this.#row(name, hello));
    children.push(list);
    const facts = factRows(this.kind, source, hello);
    if (facts.length > 0) children.push(el("dl", { class: "rows facts" }, ...facts));
    if (absent.length > 0) children.push(absentNote(absent));
    const sources = sourceNames(source, rows);
    if (sources) children.push(el("p", { class: "note" }, t("panel.sources", { sources })));
    this.element.replaceChildren(...children);
  }

  #heading(title, source, hello) {
    const subject = source.device?.name ?? hello?.system?.cpu_name ?? "";
    const number = this.index === null ? "" : `GPU ${this.index}`;
    return el("header", {}, el("strong", {}, title), el("span", { class: "subject" }, [number, this.kind === "ram" ? "" : subject].filter(Boolean).join(" · ")));
  }

  #row(name, hello) {
    const value = el("span", { class: "value" });
    const reason = el("span", { class: "reason" });
    const cell = el("dd", { "data-metric": name }, value, " ", reason);
    this.#cells.set(name, { cell, value, reason });
    return el("div", { title: hello?.help?.[name] }, el("dt", {}, metricLabel(name)), cell);
  }

  #fill(source, hello) {
    for (const [name, { cell, value, reason }] of this.#cells) {
      const derived = DERIVED[name];
      const number = derived ? derived.of(source) : source.metrics[name];
      setText(value, derived ? metricText(number, derived.unit, derived.decimals) : metricValue(name, number, hello));
      setText(reason, known(number) ? "" : derived ? reasonText(source, derived.because(source)) : reasonText(source, name));
      setAttribute(cell, "data-state", known(number) ? "known" : "unknown");
    }
  }

  #place() {
    const around = this.anchor.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = Math.max(EDGE, Math.min(around.left, innerWidth - width - EDGE));
    const below = around.bottom + 6;
    const fitsBelow = below + height <= innerHeight - EDGE;
    const top = fitsBelow || around.top - height - 6 < EDGE ? Math.min(below, Math.max(EDGE, innerHeight - height - EDGE)) : around.top - height - 6;
    this.element.style.left = `${Math.round(left)}px`;
    this.element.style.top = `${Math.round(top)}px`;
  }
}

const memoryField = (source, what) => `${source.pool === "unified" ? "unified" : "vram"}_${what}`;
const percent = (value) => (value === null ? null : value * 100);

/** Rows that no metric holds but that people look for. `because` names the metric whose reason explains a dash. */
const DERIVED = {
  memory_free: {
    unit: "B",
    of: (source) => {
      const { used, total } = memoryOf(source);
      return used === null || total === null ? null : Math.max(0, total - used);
    },
    because: (source) => memoryField(source, "used"),
  },
  memory_ratio: { unit: "%", decimals: 1, of: (source) => percent(memoryOf(source).ratio), because: (source) => memoryField(source, "used") },
  power_ratio: {
    unit: "%",
    decimals: 0,
    of: ({ metrics }) => percent(ratio(metrics.power_now ?? metrics.power_average, metrics.power_cap)),
    because: ({ metrics }) => (known(metrics.power_cap) ? "power_now" : "power_cap"),
  },
  ram_ratio: { unit: "%", decimals: 1, of: ({ metrics }) => percent(ratio(metrics.memory_used, metrics.memory_total)), because: () => "memory_used" },
};

function derivedRows(kind) {
  return { vram: ["memory_ratio", "memory_free"], power: ["power_ratio"], ram: ["ram_ratio"] }[kind] ?? [];
}

function factRows(kind, source, hello) {
  const limits = source.device?.limits ?? {};
  const { fp16_tflops: fp16, bw_gbs: bandwidth } = specsOf(source.device)?.specs ?? {};
  const facts = {
    gpu: [["gfx_clock_max", limits.gfx_clock_max, "MHz"], ["memory_clock_max", limits.memory_clock_max, "MHz"],
      ["temperature_edge_critical", limits.temperature_edge_critical, "°C"],
      ["temperature_junction_critical", limits.temperature_junction_critical, "°C"],
      ["temperature_slowdown", limits.temperature_slowdown, "°C"], ["compute_units", source.device?.compute_units, ""],
      ["fp16_tflops", fp16, "TFLOPS", fp16 < 100 ? 1 : 0]],
    vram: [["bw_gbs", bandwidth, "GB/s"], ["temperature_memory_critical", limits.temperature_memory_critical, "°C"]],
    power: [["tgp", source.device?.tgp, "W"]],
    cpu: [["cpu_threads", hello?.system?.cpu_threads, ""]],
  }[kind] ?? [];
  const rows = facts.filter(([, value]) => known(value)).map(([name, value, unit, decimals]) => [metricLabel(name), metricText(value, unit, decimals)]);
  if (kind === "vram" && source.device?.vram_type) rows.push([metricLabel("vram_type"), source.device.vram_type]);
  if (kind === "cpu") for (const name of ["kernel", "os"]) if (hello?.system?.[name]) rows.push([metricLabel(name), hello.system[name]]);
  return rows.map(([label, text]) => el("div", {}, el("dt", {}, label), el("dd", {}, text)));
}

function absentNote(absent) {
  const names = absent.flatMap((name, i) => [i > 0 ? ", " : "", el("span", { "data-metric": name, "data-state": "unknown" }, metricLabel(name))]);
  return el("p", { class: "note" }, `${DASH} ${t("panel.absent")} `, ...names);
}

function sourceNames(source, rows) {
  return [...new Set(rows.map((name) => source.sources?.[name]).filter(Boolean))].join(", ");
}
