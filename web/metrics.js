// Which metrics belong together, and how one is shown. The bridge names the columns; a metric that this page does not know
// yet is shown with its own name in the GPU's or the CPU's panel.

import { metricText, known } from "./format.js";
import { optional, t } from "./i18n.js";

/** The metrics of each capsule's panel: `main` is always a row, `more` only where the device has it. */
export const PANELS = {
  gpu: {
    main: ["gfx_busy", "gfx_clock", "temperature_edge"],
    more: ["temperature_junction", "temperature_memory", "memory_busy", "memory_clock", "soc_clock", "media_clock", "encode_busy",
      "decode_busy", "media_busy", "npu_busy", "throttle", "voltage_gfx", "pcie_speed", "pcie_width", "pcie_rx", "pcie_tx",
      "pcie_replays", "quality"],
  },
  vram: {
    main: ["vram_used", "vram_total"],
    more: ["vram_reserved", "vram_visible_used", "vram_visible_total", "gtt_used", "gtt_total", "unified_used", "unified_total",
      "process_count", "process_vram", "external_vram", "dram_read", "dram_write", "ecc_correctable", "ecc_uncorrectable"],
  },
  power: {
    main: ["power_now", "power_average", "power_cap"],
    more: ["energy", "fan_rpm", "fan_percent"],
  },
  cpu: {
    main: ["cpu_busy", "cpu_clock"],
    more: ["cpu_temperature", "cpu_power", "load1", "disk_used", "disk_total", "disk_read", "disk_write", "net_rx", "net_tx"],
  },
  ram: {
    main: ["memory_used", "memory_available", "memory_total"],
    more: ["swap_used", "swap_total", "commit_used", "commit_limit"],
  },
};

/** The words of bit sets, from the lowest bit on. */
const BITS = {
  throttle: ["power", "thermal", "current", "voltage", "protection", "other"],
  quality: ["settling", "inconsistent", "dropped", "estimated"],
};

const CATCH_ALL = { gpu: ["gpu", "vram", "power"], cpu: ["cpu", "ram"] };

/**
 * @param {string} name of a metric
 * @returns {string} what people call it
 */
export function metricLabel(name) {
  return optional(`metric.${name}`) ?? name.replaceAll("_", " ");
}

/**
 * @param {string} name of a metric
 * @param {?number} value
 * @param {?Object} hello for units and decimals
 * @returns {string}
 */
export function metricValue(name, value, hello) {
  if (known(value) && Object.hasOwn(BITS, name)) return bitsText(name, value);
  return metricText(value, hello?.units?.[name], hello?.decimals?.[name]);
}

function bitsText(name, value) {
  if (value === 0) return t("value.none");
  const words = BITS[name].flatMap((word, bit) => (value & (1 << bit) ? [t(`${name}.${word}`)] : []));
  return words.length > 0 ? words.join(", ") : metricText(value, "bits");
}

/**
 * Why a number is unknown, in words.
 * @param {{unknown: Object<string, string>, state?: string}} source a GPU or the host
 * @param {string} name of a metric
 * @returns {string}
 */
export function reasonText(source, name) {
  const reason = source.unknown[name];
  if (!reason) return t("reason.none");
  return optional(`reason.${reason}`) ?? reason;
}

/**
 * The metrics of a panel, split into rows and those that this device does not have.
 * @param {"gpu"|"vram"|"power"|"cpu"|"ram"} kind
 * @param {{metrics: Object, unknown: Object, pool?: string}} source
 * @returns {{rows: string[], absent: string[]}}
 */
export function panelMetrics(kind, source) {
  const { main, more } = PANELS[kind];
  const extra = kind in CATCH_ALL ? unclaimed(CATCH_ALL[kind], source) : [];
  const rows = kind === "vram" && source.pool === "unified" ? ["unified_used", "unified_total", ...main] : [...main];
  const absent = [];
  for (const name of [...more, ...extra]) {
    if (rows.includes(name) || !(name in source.metrics)) continue;
    (source.unknown[name] === "not supported" ? absent : rows).push(name);
  }
  return { rows, absent };
}

function unclaimed(kinds, source) {
  const claimed = new Set(kinds.flatMap((kind) => [...PANELS[kind].main, ...PANELS[kind].more]));
  return Object.keys(source.metrics).filter((name) => !claimed.has(name));
}
