// The cards below the capsules: one a GPU, one for the system, and a note where there is no GPU.

import { el, setAttribute, setStyle, setText } from "./dom.js";
import { DASH, byteCount, known, withUnit } from "./format.js";
import { GPU_LANES, HOST_LANES, gpuLanes, hostLanes, level, ratio, THRESHOLDS } from "./derive.js";
import { HistoryGraph } from "./history.js";
import { metricLabel, metricValue, reasonText } from "./metrics.js";
import { optional, t } from "./i18n.js";

const GPU_FACTS = ["gfx_clock", "memory_clock", "temperature_junction", "temperature_memory", "memory_busy", "media_busy", "npu_busy",
  "power_cap", "fan_rpm", "voltage_gfx", "pcie_rx", "pcie_tx", "throttle", "process_count", "energy"];
/** Where many GPUs share the page; the panels have the rest. */
const GPU_FACTS_SHORT = ["gfx_clock", "temperature_junction", "temperature_memory", "memory_busy", "fan_rpm", "throttle"];
const HOST_FACTS = ["cpu_clock", "cpu_temperature", "cpu_power", "load1", "net_rx", "net_tx", "disk_read", "disk_write"];
const UNSAID_REASONS = new Set(["not supported", "asleep", "letting sleep"]);
const HOST_BARS = [["ram", "memory"], ["swap", "swap"], ["disk", "disk"]];

/** What a card must show of one source; the rest is in the panels. */
class Card {
  constructor(source, graph) {
    this.source = source;
    this.graph = graph;
    this.bars = [];
    this.facts = new Map();
    this.factList = el("dl", { class: "facts" });
  }

  addBar(key, prefix) {
    const fill = el("span", { class: "bar-fill" });
    const text = el("span", { class: "bar-text" });
    const share = el("span", { class: "bar-share" });
    const track = el("div", { class: "bar-track", role: "meter", "aria-label": t(`bar.${key}`), "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
    const row = el("div", { class: "memory-bar", "data-bar": key }, el("span", { class: "bar-label" }, t(`bar.${key}`)), text, share, track);
    const isMain = this.bars.length === 0;
    this.bars.push({ prefix, isMain, row, track, text, share });
    return row;
  }

  update(hello) {
    for (const bar of this.bars) paintBar(bar, this.source);
    for (const name of this.factNames) this.#updateFact(name, hello);
    this.factList.hidden = [...this.facts.values()].every(({ row }) => row.hidden);
  }

  #updateFact(name, hello) {
    const { metrics, unknown } = this.source;
    // What a whole device explains by its state needs no row of its own.
    const hidden = !(name in metrics) || UNSAID_REASONS.has(unknown[name]);
    let fact = this.facts.get(name);
    if (!fact) {
      const value = el("span");
      const reason = el("span", { class: "reason" });
      const cell = el("dd", { "data-metric": name }, value, " ", reason);
      fact = { value, reason, row: el("div", { title: hello?.help?.[name] }, el("dt", {}, metricLabel(name)), cell) };
      this.facts.set(name, fact);
      this.factList.append(fact.row);
    }
    if (fact.row.hidden !== hidden) fact.row.hidden = hidden;
    if (hidden) return;
    setText(fact.value, metricValue(name, metrics[name], hello));
    setText(fact.reason, known(metrics[name]) ? "" : reasonText(this.source, name));
  }
}

function paintBar({ prefix, isMain, row, track, text, share }, { metrics, unknown }) {
  const used = metrics[`${prefix}_used`], total = metrics[`${prefix}_total`];
  const part = ratio(used, total);
  const hidden = !isMain && !known(total) && !known(used) && (unknown[`${prefix}_total`] ?? "not supported") === "not supported";
  // A machine without swap has a total of zero: a fact, but not one that needs a bar.
  if (row.hidden !== (hidden || total === 0)) row.hidden = hidden || total === 0;
  setText(text, known(used) || known(total) ? `${byteCount(used)} / ${byteCount(total)}` : DASH);
  setText(share, withUnit(part === null ? null : part * 100, "%"));
  setAttribute(row, "data-state", prefix === "memory" ? level(part === null ? null : part * 100, THRESHOLDS.ram) : level(part, THRESHOLDS.vram));
  setAttribute(track, "aria-valuenow", part === null ? null : Math.round(part * 100));
  setAttribute(track, "aria-valuetext", text.textContent);
  setStyle(row, "--fill", part === null ? "0" : Math.min(1, part).toFixed(3));
}

/** The card of one GPU. */
export class GpuCard extends Card {
  /**
   * @param {Object} gpu of the store
   * @param {boolean} compact whether it has many neighbours
   */
  constructor(gpu, compact) {
    super(gpu, new HistoryGraph(String(gpu.index), GPU_LANES));
    this.factNames = compact ? GPU_FACTS_SHORT : GPU_FACTS;
    const device = gpu.device;
    this.badge = el("span", { class: "badge state", "data-testid": `state-${gpu.index}` });
    const simulated = device.simulated ? el("span", { class: "badge simulated" }, t("badge.simulated")) : null;
    const bars = gpu.pool === "unified" ? [["unified", "unified"], ["carveout", "vram"], ["gtt", "gtt"]] : [["vram", "vram"], ["gtt", "gtt"]];
    this.element = el("article", { class: "card gpu", "data-testid": "card-gpu", "data-gpu": gpu.index, "aria-label": `GPU ${gpu.index} ${device.name}` },
      el("header", {},
        el("div", { class: "card-title" }, el("span", { class: "index" }, String(gpu.index)), el("h2", {}, device.name), this.badge, simulated),
        el("p", { class: "meta" }, ...metaParts(device))),
      this.graph.element,
      el("div", { class: "memory-bars" }, ...bars.map(([key, prefix]) => this.addBar(key, prefix))),
      this.factList);
  }

  /** @param {?Object} hello */
  update(hello) {
    super.update(hello);
    const { state } = this.source;
    setAttribute(this.element, "data-state", state);
    setText(this.badge, state === "ok" ? "" : t(`state.${state}`));
    setAttribute(this.badge, "title", state === "ok" ? null : t(`state.${state}.help`));
    this.badge.hidden = state === "ok";
    this.graph.showValues(gpuLanes(this.source));
  }
}

function metaParts(device) {
  const driver = [device.driver, device.driver_version].filter(Boolean).join(" ");
  const units = known(device.compute_units) ? t("card.units", { count: device.compute_units }) : null;
  const parts = [optional(`vendor.${device.vendor}`) ?? device.vendor, device.arch, driver, t(`pool.${device.pool}`), units, device.vram_type, device.id];
  return parts.filter(Boolean).map((text) => el("span", {}, text));
}

/** The card of the machine itself. */
export class SystemCard extends Card {
  /**
   * @param {Object} host of the store
   * @param {?Object} hello
   */
  constructor(host, hello) {
    super(host, new HistoryGraph("host", HOST_LANES));
    this.factNames = HOST_FACTS;
    const system = hello?.system ?? {};
    const threads = known(system.cpu_threads) ? t("card.threads", { count: system.cpu_threads }) : null;
    const meta = [system.cpu_name, threads, system.os, system.kernel].filter(Boolean);
    this.element = el("article", { class: "card system", "data-testid": "card-system", "aria-label": t("system.title") },
      el("header", {}, el("div", { class: "card-title" }, el("h2", {}, t("system.title"))), el("p", { class: "meta" }, ...meta.map((text) => el("span", {}, text)))),
      this.graph.element,
      el("div", { class: "memory-bars" }, ...HOST_BARS.map(([key, prefix]) => this.addBar(key, prefix))),
      this.factList);
  }

  /** @param {?Object} hello */
  update(hello) {
    super.update(hello);
    this.graph.showValues(hostLanes(this.source));
  }
}

/**
 * A friendly note in place of the GPU cards.
 * @returns {HTMLElement}
 */
export function noGpuCard() {
  return el("article", { class: "card empty", "data-testid": "no-gpu" },
    el("h2", {}, t("empty.title")), el("p", {}, t("empty.text")), el("pre", {}, el("code", {}, "./run.sh --simulate strix-halo")));
}
