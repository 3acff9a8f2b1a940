import assert from "node:assert/strict";
import { test } from "node:test";
import { runs } from "../../web/chart.js";
import { retryDelay } from "../../web/connection.js";
import { Series, gapAfter, statistics } from "../../web/series.js";
import { Store } from "../../web/store.js";

const T = 1764540000000;

function device(index, more = {}) {
  return { index, id: `0000:0${index}:00.0`, name: `GPU ${index}`, vendor: "amd", pool: "discrete", state: "ok", simulated: false, limits: {}, ...more };
}

function hello(more = {}) {
  return { type: "hello", epoch: "e1", t: T, state: "live", simulated: false, fields: ["gfx_busy", "vram_used", "vram_total"],
    host_fields: ["cpu_busy", "memory_used", "memory_total"], devices: [device(0), device(1)], ...more };
}

function filledStore(clock = { now: T }) {
  const store = new Store(() => clock.now);
  store.apply(hello());
  store.apply({ type: "s", seq: 1, t: T, g: [[10, 1, 4], [20, 2, 4]], c: [5, 1, 2] });
  return store;
}

test("a sample fills the rows in the order of the hello", () => {
  const store = filledStore();
  assert.deepEqual(store.gpus.map((gpu) => gpu.metrics.gfx_busy), [10, 20]);
  assert.equal(store.host.metrics.cpu_busy, 5);
  assert.deepEqual(store.gpus[1].series.points[0].values, [20, 50, null, null]);
  assert.deepEqual(store.host.series.points[0].values, [5, 50]);
});

test("messages of unknown type, without a type, or before the hello change nothing", () => {
  const store = new Store(() => T);
  for (const message of [null, 7, {}, { type: "nonsense" }, { type: "__proto__" }, { type: "s", t: T, g: [[1]], c: [1] }]) store.apply(message);
  assert.equal(store.gpus.length, 0);
  assert.equal(store.dataAt, null);
});

test("a row of null leaves the device as it was", () => {
  const store = filledStore();
  store.apply({ type: "s", seq: 2, t: T + 500, g: [null, [30, 2, 4]], c: [6, 1, 2] });
  assert.deepEqual(store.gpus.map((gpu) => gpu.metrics.gfx_busy), [10, 30]);
});

test("a number that went unknown asks for its reason once", () => {
  const store = filledStore();
  store.apply({ type: "s", seq: 2, t: T + 500, g: [[null, 1, 4], [20, 2, 4]], c: [5, 1, 2] });
  assert.equal(store.gpus[0].metrics.gfx_busy, null);
  assert.equal(store.reasonMissing, true);
  store.mergeReasons({ gpus: [{ index: 0, unknown: { gfx_busy: "error", vram_used: "stale" } }], system: { unknown: {} } });
  assert.deepEqual(store.gpus[0].unknown, { gfx_busy: "error" });
  assert.equal(store.reasonMissing, false);
  store.apply({ type: "s", seq: 3, t: T + 1000, g: [[7, 1, 4], [20, 2, 4]], c: [5, 1, 2] });
  assert.deepEqual(store.gpus[0].unknown, {});
});

test("a snapshot replaces numbers and reasons, and says how old they are", () => {
  const store = filledStore();
  store.apply({ type: "snap", epoch: "e1", state: "dead", age_ms: 12000,
    gpus: [{ index: 0, state: "asleep", metrics: { gfx_busy: null }, unknown: { gfx_busy: "asleep" } }], system: { metrics: { cpu_busy: 1 }, unknown: {} } });
  assert.equal(store.feed, "dead");
  assert.equal(store.age, 12000);
  assert.equal(store.gpus[0].state, "asleep");
  assert.equal(store.gpus[0].unknown.gfx_busy, "asleep");
});

test("a device falls asleep with its reasons", () => {
  const store = filledStore();
  store.apply({ type: "device", index: 1, state: "asleep", unknown: { gfx_busy: "asleep" } });
  assert.equal(store.gpus[1].state, "asleep");
  assert.equal(store.gpus[1].metrics.gfx_busy, null);
});

test("history survives a restart of the broker, and other devices start anew", () => {
  const store = filledStore();
  store.apply(hello({ epoch: "e2", devices: [device(0), device(1, { id: "0000:99:00.0" })] }));
  assert.equal(store.gpus[0].series.points.length, 1);
  assert.equal(store.gpus[1].series.points.length, 0);
});

test("a bridge without a broker does not wipe the last numbers", () => {
  const store = filledStore();
  store.apply(hello({ epoch: null, state: "absent", devices: [] }));
  assert.equal(store.feed, "absent");
  assert.equal(store.gpus[0].metrics.gfx_busy, 10);
});

test("history without totals uses the totals known now", () => {
  const store = filledStore();
  store.apply({ type: "history", gpu: 0, fields: ["gfx_busy", "vram_used", "vram_total"], t: [T - 2000, T - 1000], rows: [[1, 2, null], [2, 3, null]] });
  assert.deepEqual(store.gpus[0].series.points.map((point) => point.values[1]), [50, 75, 25]);
});

test("simulated is said where one device is", () => {
  const store = filledStore();
  assert.equal(store.simulated, false);
  store.apply(hello({ devices: [device(0), device(1, { simulated: true })] }));
  assert.equal(store.simulated, true);
});

test("missed ticks are counted", () => {
  const store = filledStore();
  store.apply({ type: "gap", from: 5, to: 7, why: "slow" });
  store.apply({ type: "gap", from: 8, to: 9, why: "paused" });
  assert.equal(store.missedTicks, 3);
});

test("samples of one slice are averaged, each lane by itself", () => {
  const series = new Series(2, 1000);
  series.append(T, [10, null]);
  series.append(T + 500, [20, 4]);
  series.append(T + 1000, [99, 5]);
  assert.deepEqual(series.points.map((point) => point.values), [[15, 4], [99, 5]]);
});

test("history replaces its own span and keeps what is older and newer", () => {
  const series = new Series(1, 1000);
  for (let i = 0; i < 10; i++) series.append(T + i * 1000, [i]);
  series.merge([T + 4000, T + 5000], [[40], [50]]);
  assert.deepEqual(series.points.map((point) => point.values[0]), [0, 1, 2, 3, 40, 50, 6, 7, 8, 9]);
});

test("a clock that was set back drops the future", () => {
  const series = new Series(1, 1000);
  series.append(T + 60e3, [1]);
  series.append(T, [2]);
  assert.deepEqual(series.points.map((point) => point.t), [T]);
});

test("old points are dropped", () => {
  const series = new Series(1, 1000);
  for (let i = 0; i < 3000; i++) series.append(T + i * 1000, [i]);
  assert.ok(series.points.length <= 1021);
  assert.equal(series.points.at(-1).values[0], 2999);
});

test("neither a hole in time nor an unknown value is drawn across", () => {
  const at = (t, value) => ({ t, values: [value] });
  const points = [at(0, 1), at(1, 2), at(2, null), at(3, 4), at(50, 5)];
  assert.deepEqual(runs(points, 0, 10).map((run) => run.map((point) => point.t)), [[0, 1], [3], [50]]);
  assert.deepEqual(runs([], 0, 10), []);
});

test("a gap is judged by the usual distance of the points", () => {
  const every = (ms) => Array.from({ length: 10 }, (_, i) => ({ t: i * ms }));
  assert.equal(gapAfter(every(1000), 1000, 500), 2500);
  assert.equal(gapAfter(every(5000), 1000, 500), 12500);
  assert.equal(gapAfter([], 500, 500), 2000);
});

test("statistics skip what is unknown", () => {
  assert.deepEqual(statistics([{ values: [2] }, { values: [null] }, { values: [4] }], 0), { last: 4, mean: 3, max: 4 });
  assert.deepEqual(statistics([], 0), { last: null, mean: null, max: null });
});

test("the wait before a new attempt doubles to 15 s and is spread", () => {
  assert.equal(retryDelay(0, () => 0.5), 500);
  assert.equal(retryDelay(1, () => 0.5), 1000);
  assert.equal(retryDelay(4, () => 0.5), 8000);
  assert.equal(retryDelay(50, () => 0.5), 15000);
  assert.ok(retryDelay(3, () => 0) < retryDelay(3, () => 0.99));
  assert.ok(retryDelay(50, () => 1) <= 15000);
});
