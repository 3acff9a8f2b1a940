import assert from "node:assert/strict";
import { test } from "node:test";
import { DASH, byteCount, duration, energy, fixed, gib, metricText, shortName, withUnit } from "../../web/format.js";
import { THRESHOLDS, gpuReadings, hostReadings, level, memoryOf } from "../../web/derive.js";

const GIB = 2 ** 30;

test("an unknown number is a dash, never a zero", () => {
  for (const value of [null, undefined, NaN, Infinity, "7"]) {
    assert.equal(fixed(value, 1), DASH);
    assert.equal(withUnit(value, "W"), DASH);
    assert.equal(gib(value), DASH);
    assert.equal(byteCount(value), DASH);
    assert.equal(energy(value), DASH);
    assert.equal(metricText(value, "B"), DASH);
  }
  assert.equal(metricText(0, "%"), "0 %");
});

test("numbers have fixed decimals and no negative zero", () => {
  assert.equal(fixed(12.34, 1), "12.3");
  assert.equal(fixed(-0.01, 1), "0.0");
  assert.equal(fixed(-2.5, 1), "-2.5");
});

test("bytes count by 1024 and keep one decimal from a gigabyte on", () => {
  assert.equal(byteCount(0), "0 B");
  assert.equal(byteCount(1023), "1023 B");
  assert.equal(byteCount(1536), "1.5 KB");
  assert.equal(byteCount(512 * 2 ** 20), "512 MB");
  assert.equal(byteCount(120.5 * GIB), "120.5 GB");
  assert.equal(gib(11.94 * GIB), "11.9");
});

test("units decide how a metric is written", () => {
  assert.equal(metricText(2048, "B/s"), "2.0 KB/s");
  assert.equal(metricText(1.25e6, "J"), "1.25 MJ");
  assert.equal(metricText(16, "GT/s", 1), "16.0 GT/s");
  assert.equal(metricText(3, ""), "3");
});

test("a span of time is one number", () => {
  assert.equal(duration(-5), "0 s");
  assert.equal(duration(12400), "12 s");
  assert.equal(duration(180e3), "3 min");
  assert.equal(duration(3 * 3600e3), "3 h");
});

test("short names keep something", () => {
  assert.equal(shortName("AMD Radeon RX 7900 XTX"), "RX 7900 XTX");
  assert.equal(shortName("NVIDIA GeForce RTX 4090"), "RTX 4090");
  assert.equal(shortName("AMD Instinct MI300X"), "Instinct MI300X");
  assert.equal(shortName("AMD Radeon 8060S (simulated)"), "8060S");
  assert.equal(shortName("Radeon "), "Radeon ");
});

test("levels change above a threshold, not at it", () => {
  assert.equal(level(80, THRESHOLDS.gpu), "ok");
  assert.equal(level(80.1, THRESHOLDS.gpu), "warn");
  assert.equal(level(95, THRESHOLDS.gpu), "warn");
  assert.equal(level(95.1, THRESHOLDS.gpu), "critical");
  assert.equal(level(null, THRESHOLDS.gpu), "unknown");
});

test("edge is the temperature where there is one, else junction", () => {
  const temperature = (metrics) => gpuReadings({ pool: "discrete", metrics }).temperature;
  assert.equal(temperature({ temperature_edge: 60, temperature_junction: 75 }), 60);
  assert.equal(temperature({ temperature_edge: null, temperature_junction: 75 }), 75);
  assert.equal(temperature({}), null);
});

test("power is judged by its cap, and by watts without one", () => {
  const power = (metrics) => gpuReadings({ pool: "discrete", metrics });
  assert.equal(power({ power_now: 96, power_cap: 100 }).levels.power, "critical");
  assert.equal(power({ power_now: 121 }).levels.power, "warn");
  assert.equal(power({ power_average: 171 }).levels.power, "critical");
  assert.equal(power({ power_now: 50, power_cap: 0 }).power.ratio, null);
});

test("a unified pool shows its own pair and never a sum", () => {
  const metrics = { vram_used: 1, vram_total: 2, unified_used: 30, unified_total: 100 };
  assert.deepEqual(memoryOf({ pool: "unified", metrics }), { used: 30, total: 100, ratio: 0.3, unified: true });
  assert.deepEqual(memoryOf({ pool: "discrete", metrics }), { used: 1, total: 2, ratio: 0.5, unified: false });
  assert.equal(memoryOf({ pool: "unified", metrics: { vram_used: 1, vram_total: 2 } }).used, null);
});

test("RAM is a share of the whole", () => {
  assert.equal(hostReadings({ metrics: { memory_used: 91, memory_total: 100 } }).levels.ram, "critical");
  assert.equal(hostReadings({ metrics: { memory_used: 1, memory_total: 0 } }).ram, null);
});
