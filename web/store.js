// What the page knows: applies the bridge's messages, and tells its listeners that something changed.

import { known } from "./format.js";
import { GPU_LANES, HOST_LANES, gpuLanes, hostLanes } from "./derive.js";
import { Series } from "./series.js";
import { Sessions } from "./sessions.js";

const FEED_STATES = new Set(["live", "stale", "dead", "absent"]);

/**
 * Fires `shape` when devices or columns changed, and `change` when numbers or states did.
 */
export class Store extends EventTarget {
  /** @param {() => number} [now] the local clock in milliseconds */
  constructor(now = Date.now) {
    super();
    this.now = now;
    this.hello = null;
    /** "live", "stale", "dead", "absent", or null before the first hello */
    this.feed = null;
    /** devices in the order of hello.devices */
    this.gpus = [];
    this.host = { metrics: {}, unknown: {}, series: new Series(HOST_LANES.length) };
    /** local time at which the newest numbers were true, null before the first */
    this.dataAt = null;
    /** what to add to the local clock to get the server's */
    this.clockOffset = 0;
    /** ticks that the bridge could not send to this page because it was too slow */
    this.missedTicks = 0;
    /** what runs, and what has ended */
    this.sessions = new Sessions();
    /** who holds which GPU, a list by GPU as the bridge sent it; null while this page was never told */
    this.processes = null;
    this.sliceMs = 1000;
    this.#handlers = {
      hello: (message) => this.#applyHello(message),
      snap: (message) => this.#applySnapshot(message),
      s: (message) => this.#applySample(message),
      state: (message) => this.#applyState(message),
      device: (message) => this.#applyDevice(message),
      history: (message) => this.#applyHistory(message),
      gap: (message) => this.#applyGap(message),
      sessions: (message) => this.#applySessions(message),
      event: (message) => this.#applyEvents(message),
      processes: (message) => this.#applyProcesses(message),
    };
  }

  #handlers;
  #known = new Map();

  /**
   * Applies one message; an unknown type is ignored.
   * @param {{type: string}} message
   */
  apply(message) {
    if (!message || typeof message !== "object" || !Object.hasOwn(this.#handlers, message.type)) return;
    this.#handlers[message.type](message);
  }

  /** @returns {boolean} whether anything shown is simulated */
  get simulated() {
    return Boolean(this.hello?.simulated) || this.gpus.some((gpu) => gpu.device.simulated);
  }

  /** @returns {?number} age of the newest numbers in milliseconds */
  get age() {
    return this.dataAt === null ? null : Math.max(0, this.now() - this.dataAt);
  }

  /** @returns {number} the server's time now, as far as this page can know */
  get serverNow() {
    return this.now() + this.clockOffset;
  }

  /**
   * Sets how much time one point of history stands for.
   * @param {number} sliceMs
   */
  setSlice(sliceMs) {
    this.sliceMs = sliceMs;
    for (const gpu of this.#known.values()) gpu.series.sliceMs = sliceMs;
    this.host.series.sliceMs = sliceMs;
  }

  /**
   * Takes the reasons of a newer snapshot for numbers that went unknown since; samples carry none.
   * @param {{gpus: Array, system: Object}} snapshot
   */
  mergeReasons(snapshot) {
    for (const row of snapshot.gpus ?? []) {
      const gpu = this.#known.get(row.index);
      if (gpu) takeReasons(gpu, row.unknown);
    }
    takeReasons(this.host, snapshot.system?.unknown);
    this.#emit("change");
  }

  /**
   * Takes the ended spans of the bridge's document; what runs comes by messages, which may be newer.
   * @param {{finished: Object[]}} document
   */
  takeSessions({ finished }) {
    this.sessions.apply({ finished });
    this.#emit("change");
  }

  /** @returns {boolean} whether a number is unknown and nobody has said why */
  get reasonMissing() {
    return [...this.gpus, this.host].some((source) => source.reasonMissing);
  }

  #applyHello(message) {
    const keepOld = (message.devices ?? []).length === 0 && message.epoch == null && this.gpus.length > 0;
    this.hello = message;
    if (FEED_STATES.has(message.state)) this.feed = message.state;
    // A bridge without a broker knows no devices, but this page may still show their last numbers, dimmed.
    if (!keepOld) this.gpus = (message.devices ?? []).map((device) => this.#adopt(device));
    this.#setClock(message.t);
    this.#emit("shape");
    this.#emit("change");
  }

  #adopt(device) {
    let gpu = this.#known.get(device.index);
    if (!gpu || gpu.device.id !== device.id) {
      gpu = { index: device.index, metrics: {}, unknown: {}, sources: {}, series: new Series(GPU_LANES.length, this.sliceMs) };
      this.#known.set(device.index, gpu);
    }
    gpu.device = device;
    gpu.pool = device.pool;
    gpu.state = device.state ?? "ok";
    return gpu;
  }

  #applySnapshot(message) {
    if (FEED_STATES.has(message.state)) this.feed = message.state;
    for (const row of message.gpus ?? []) {
      const gpu = this.#known.get(row.index);
      if (!gpu) continue;
      replaceMetrics(gpu, row);
      gpu.sources = row.sources ?? {};
      gpu.state = row.state ?? gpu.state;
    }
    replaceMetrics(this.host, message.system ?? {});
    this.sessions.apply(message);
    this.#takeProcesses(message.processes);
    const age = known(message.age_ms) ? message.age_ms : 0;
    const hasNumbers = message.epoch != null;
    if (hasNumbers) this.dataAt = this.now() - age;
    this.#emit("change");
  }

  #applySample(message) {
    if (!this.hello) return;
    const fields = this.hello.fields ?? [];
    // Rows are in the order of the hello that named the columns; gpus is that order.
    if (Array.isArray(message.g)) message.g.forEach((row, position) => {
      const gpu = this.gpus[position];
      if (!gpu || !Array.isArray(row)) return;
      applyRow(gpu, fields, row);
      gpu.series.append(message.t, gpuLanes(gpu));
    });
    if (Array.isArray(message.c)) {
      applyRow(this.host, this.hello.host_fields ?? [], message.c);
      this.host.series.append(message.t, hostLanes(this.host));
    }
    this.#setClock(message.t);
    this.dataAt = this.now();
    this.#emit("change");
  }

  #applyState(message) {
    if (!FEED_STATES.has(message.state)) return;
    this.feed = message.state;
    if (known(message.age_ms) && this.dataAt !== null) this.dataAt = this.now() - message.age_ms;
    this.#setClock(message.t);
    this.#emit("change");
  }

  #applyDevice(message) {
    const gpu = this.#known.get(message.index);
    if (!gpu) return;
    gpu.state = message.state ?? gpu.state;
    for (const [name, reason] of Object.entries(message.unknown ?? {})) {
      gpu.metrics[name] = null;
      gpu.unknown[name] = reason;
    }
    this.#emit("change");
  }

  #applyHistory(message) {
    const isHost = message.gpu === null;
    const source = isHost ? this.host : this.#known.get(message.gpu);
    if (!source || !Array.isArray(message.t)) return;
    const lanes = isHost ? hostLanes : gpuLanes;
    const rows = message.rows.map((row) => {
      // History need not carry what hardly changes.
      const { vram_total, unified_total, memory_total } = source.metrics;
      const metrics = { vram_total, unified_total, memory_total };
      message.fields.forEach((name, column) => { metrics[name] = row[column] ?? metrics[name]; });
      return lanes({ pool: source.pool, metrics });
    });
    source.series.merge(message.t, rows);
    this.#emit("change");
  }

  #applyGap(message) {
    if (message.why === "paused") return;
    if (known(message.events)) this.sessions.missedEvents += message.events;
    else if (message.why === "slow" && known(message.to) && known(message.from)) this.missedTicks += Math.max(0, message.to - message.from + 1);
  }

  #applySessions(message) {
    this.sessions.apply(message);
    this.#setClock(message.t);
    this.#emit("change");
  }

  #applyEvents(message) {
    this.sessions.applyEvents(message);
    this.#emit("change");
  }

  #applyProcesses(message) {
    this.#takeProcesses(message.gpus);
    this.#setClock(message.t);
    this.#emit("change");
  }

  #takeProcesses(gpus) {
    if (Array.isArray(gpus)) this.processes = gpus.filter((gpu) => Number.isInteger(gpu?.gpu));
  }

  #setClock(t) {
    if (known(t)) this.clockOffset = t - this.now();
  }

  #emit(name) {
    this.dispatchEvent(new Event(name));
  }
}

function replaceMetrics(source, document) {
  source.metrics = { ...document.metrics };
  source.unknown = { ...document.unknown };
  source.reasonMissing = false;
}

function applyRow(source, fields, row) {
  fields.forEach((name, column) => {
    const value = row[column];
    if (known(value)) {
      source.metrics[name] = value;
      delete source.unknown[name];
    } else {
      source.metrics[name] = null;
      if (!source.unknown[name]) source.reasonMissing = true;
    }
  });
}

function takeReasons(source, unknown = {}) {
  for (const [name, reason] of Object.entries(unknown)) {
    if (!known(source.metrics[name])) source.unknown[name] = reason;
  }
  source.reasonMissing = false;
}
