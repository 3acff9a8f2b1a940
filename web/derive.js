// From raw metrics to the few readings that capsules, cards and graphs share, and to their alarm levels.

import { known } from "./format.js";

/**
 * Above `warn` and above `critical` (never at them) a reading changes level; percent, ratios and watts.
 */
export const THRESHOLDS = {
  cpu: { warn: 50, critical: 80 },
  ram: { warn: 70, critical: 90 },
  gpu: { warn: 80, critical: 95 },
  vram: { warn: 0.85, critical: 0.95 },
  power: { warn: 0.80, critical: 0.95 },
  watts: { warn: 120, critical: 170 },
};

/** The lanes of a GPU's history, in the order of `gpuLanes`. */
export const GPU_LANES = ["busy", "vram", "power", "temperature"];

/** The lanes of the host's history, in the order of `hostLanes`. */
export const HOST_LANES = ["cpu", "ram"];

/**
 * @param {?number} value
 * @param {{warn: number, critical: number}} threshold
 * @returns {"unknown"|"ok"|"warn"|"critical"}
 */
export function level(value, threshold) {
  if (!known(value)) return "unknown";
  if (value > threshold.critical) return "critical";
  return value > threshold.warn ? "warn" : "ok";
}

/**
 * The first of the values that is a number, else null.
 * @param {...?number} values
 * @returns {?number}
 */
export function firstKnown(...values) {
  for (const value of values) if (known(value)) return value;
  return null;
}

/**
 * @param {?number} part
 * @param {?number} whole
 * @returns {?number} null unless both are known and the whole is positive
 */
export function ratio(part, whole) {
  return known(part) && known(whole) && whole > 0 ? part / whole : null;
}

/**
 * The memory pair that matters on this device: the whole pool where GPU and CPU share one, else the VRAM.
 * @param {{pool: string, metrics: Object<string, ?number>}} gpu
 * @returns {{used: ?number, total: ?number, ratio: ?number, unified: boolean}}
 */
export function memoryOf(gpu) {
  const unified = gpu.pool === "unified";
  const prefix = unified ? "unified" : "vram";
  const used = firstKnown(gpu.metrics[`${prefix}_used`]);
  const total = firstKnown(gpu.metrics[`${prefix}_total`]);
  return { used, total, ratio: ratio(used, total), unified };
}

/**
 * @param {{pool: string, metrics: Object<string, ?number>}} gpu
 * @returns the readings of one GPU, each null where unknown
 */
export function gpuReadings(gpu) {
  const metrics = gpu.metrics;
  const watts = firstKnown(metrics.power_now, metrics.power_average);
  const cap = firstKnown(metrics.power_cap);
  const powerRatio = ratio(watts, cap);
  const memory = memoryOf(gpu);
  const busy = firstKnown(metrics.gfx_busy);
  return {
    busy,
    clock: firstKnown(metrics.gfx_clock),
    temperature: firstKnown(metrics.temperature_edge, metrics.temperature_junction),
    memory,
    power: { watts, cap, ratio: powerRatio },
    levels: {
      gpu: level(busy, THRESHOLDS.gpu),
      vram: level(memory.ratio, THRESHOLDS.vram),
      power: powerRatio === null ? level(watts, THRESHOLDS.watts) : level(powerRatio, THRESHOLDS.power),
    },
  };
}

/**
 * @param {{metrics: Object<string, ?number>}} host
 * @returns the readings of the machine, each null where unknown
 */
export function hostReadings(host) {
  const metrics = host.metrics;
  const memoryRatio = ratio(metrics.memory_used, metrics.memory_total);
  const cpu = firstKnown(metrics.cpu_busy);
  const ram = memoryRatio === null ? null : memoryRatio * 100;
  return {
    cpu,
    clock: firstKnown(metrics.cpu_clock),
    ram,
    levels: { cpu: level(cpu, THRESHOLDS.cpu), ram: level(ram, THRESHOLDS.ram) },
  };
}

/**
 * @param {{pool: string, metrics: Object<string, ?number>}} gpu
 * @returns {Array<?number>} values for GPU_LANES
 */
export function gpuLanes(gpu) {
  const { busy, memory, power, temperature } = gpuReadings(gpu);
  return [busy, memory.ratio === null ? null : memory.ratio * 100, power.watts, temperature];
}

/**
 * @param {{metrics: Object<string, ?number>}} host
 * @returns {Array<?number>} values for HOST_LANES
 */
export function hostLanes(host) {
  const { cpu, ram } = hostReadings(host);
  return [cpu, ram];
}
