// The last minutes of a few numbers: what the bridge remembered, then the samples since.

import { known } from "./format.js";

/** Nothing older is kept; the longest window is 15 minutes. */
export const KEEP_MS = 1020e3;

/**
 * Points of time with one value (or null) a lane. Samples of one slice of time are averaged, so a long window stays cheap to draw.
 */
export class Series {
  /**
   * @param {number} laneCount
   * @param {number} [sliceMs]
   */
  constructor(laneCount, sliceMs = 1000) {
    this.laneCount = laneCount;
    this.sliceMs = sliceMs;
    /** @type {Array<{t: number, values: Array<?number>, counts: number[], slice: ?number}>} oldest first */
    this.points = [];
  }

  /**
   * Adds one sample.
   * @param {number} t Unix milliseconds
   * @param {Array<?number>} values one a lane
   */
  append(t, values) {
    this.#dropAfter(t);
    const slice = Math.floor(t / this.sliceMs);
    const last = this.points.at(-1);
    if (last && last.slice === slice) {
      addToMean(last, t, values);
    } else {
      this.points.push({ t, slice, values: values.map(knownOrNull), counts: values.map((value) => (known(value) ? 1 : 0)) });
      this.#dropBefore(t - KEEP_MS);
    }
  }

  /**
   * Takes in the bridge's memory. It replaces the points of its own span; what is older is kept, because after a restart
   * of the broker this page may know more than the bridge, and what is newer is kept because it arrived meanwhile.
   * @param {number[]} times oldest first
   * @param {Array<Array<?number>>} rows one row of lane values a time
   */
  merge(times, rows) {
    if (times.length === 0) return;
    const margin = this.sliceMs / 2;
    const older = this.points.filter((point) => point.t < times[0] - margin);
    const newer = this.points.filter((point) => point.t > times.at(-1) + margin);
    const remembered = times.map((t, row) => ({ t, slice: null, values: rows[row].map(knownOrNull), counts: [] }));
    this.points = [...older, ...remembered, ...newer];
    this.#dropBefore(this.points.at(-1).t - KEEP_MS);
  }

  /**
   * @param {number} from Unix milliseconds
   * @param {number} to Unix milliseconds
   * @returns {Array<{t: number, values: Array<?number>}>}
   */
  between(from, to) {
    return this.points.filter((point) => point.t >= from && point.t <= to);
  }

  #dropBefore(t) {
    let count = 0;
    while (count < this.points.length && this.points[count].t < t) count++;
    if (count > 0) this.points.splice(0, count);
  }

  /** A wall clock that was set back would otherwise draw lines backwards. */
  #dropAfter(t) {
    while (this.points.length > 0 && this.points.at(-1).t > t + this.sliceMs) this.points.pop();
  }
}

function knownOrNull(value) {
  return known(value) ? value : null;
}

function addToMean(point, t, values) {
  point.t = Math.max(point.t, t);
  values.forEach((value, lane) => {
    if (!known(value)) return;
    const count = ++point.counts[lane];
    point.values[lane] = count === 1 ? value : point.values[lane] + (value - point.values[lane]) / count;
  });
}

/**
 * From which distance on two neighbours are not joined by a line. It follows the usual distance of these points, because
 * a broker that nobody watched samples more slowly.
 * @param {Array<{t: number}>} points
 * @param {number} sliceMs
 * @param {number} periodMs of the subscription
 * @returns {number} milliseconds
 */
export function gapAfter(points, sliceMs, periodMs) {
  const distances = [];
  for (let i = 1; i < points.length; i++) distances.push(points[i].t - points[i - 1].t);
  distances.sort((a, b) => a - b);
  const usual = distances.length > 0 ? distances[distances.length >> 1] : 0;
  return Math.max(2.5 * Math.max(sliceMs, periodMs, usual), 2000);
}

/**
 * @param {Array<{values: Array<?number>}>} points
 * @param {number} lane
 * @returns {{last: ?number, mean: ?number, max: ?number}}
 */
export function statistics(points, lane) {
  let sum = 0, count = 0, max = null, last = null;
  for (const { values } of points) {
    const value = values[lane];
    if (!known(value)) continue;
    sum += value;
    count++;
    last = value;
    if (max === null || value > max) max = value;
  }
  return { last, mean: count > 0 ? sum / count : null, max };
}
