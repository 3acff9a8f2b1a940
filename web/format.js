// Numbers to text. Pure functions without a DOM, so that they can be tested anywhere.

/** What stands for an unknown number. */
export const DASH = "–";

const GIB = 2 ** 30;
const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

/**
 * @param {*} value
 * @returns {boolean} whether it is a number that can be shown
 */
export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/**
 * A number with a fixed count of decimals, or the dash.
 * @param {?number} value
 * @param {number} [decimals]
 * @returns {string}
 */
export function fixed(value, decimals = 0) {
  if (!known(value)) return DASH;
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/**
 * A number and its unit, or the dash alone.
 * @param {?number} value
 * @param {string} unit
 * @param {number} [decimals]
 * @returns {string}
 */
export function withUnit(value, unit, decimals = 0) {
  if (!known(value)) return DASH;
  return unit ? `${fixed(value, decimals)} ${unit}` : fixed(value, decimals);
}

/**
 * Bytes as gibibytes without a unit: "11.9".
 * @param {?number} bytes
 * @returns {string}
 */
export function gib(bytes) {
  return known(bytes) ? fixed(bytes / GIB, 1) : DASH;
}

/**
 * Bytes in the largest unit that leaves a number of at least one; 1 GB = 1024³ B, as in other GPU monitors.
 * @param {?number} bytes
 * @returns {string}
 */
export function byteCount(bytes) {
  if (!known(bytes)) return DASH;
  let power = 0;
  let scaled = Math.abs(bytes);
  while (scaled >= 1024 && power < BYTE_UNITS.length - 1) {
    scaled /= 1024;
    power++;
  }
  // From a gigabyte on always one decimal, as in the capsules; below, three digits are enough.
  const decimals = power >= 3 || (power > 0 && scaled < 100) ? 1 : 0;
  return `${fixed(Math.sign(bytes) * scaled, decimals)} ${BYTE_UNITS[power]}`;
}

/**
 * Joules in J, kJ or MJ.
 * @param {?number} joules
 * @returns {string}
 */
export function energy(joules) {
  if (!known(joules)) return DASH;
  if (joules >= 1e6) return withUnit(joules / 1e6, "MJ", 2);
  if (joules >= 1e3) return withUnit(joules / 1e3, "kJ", 1);
  return withUnit(joules, "J", 0);
}

/**
 * A metric with the unit and decimals that the bridge's `hello` gives it.
 * @param {?number} value
 * @param {string} [unit]
 * @param {number} [decimals]
 * @returns {string}
 */
export function metricText(value, unit = "", decimals = 0) {
  if (!known(value)) return DASH;
  if (unit === "B") return byteCount(value);
  if (unit === "B/s") return `${byteCount(value)}/s`;
  if (unit === "J") return energy(value);
  if (unit === "bits") return value === 0 ? "0" : `0x${value.toString(16)}`;
  return withUnit(value, unit, decimals);
}

/**
 * A span of time in one unit, short: "12 s", "3 min", "2 h", "4 d".
 * @param {number} milliseconds
 * @returns {string}
 */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/**
 * How long something runs so far: "3.4 s", "2:05 min", "1:02:05 h".
 * @param {?number} seconds
 * @returns {string}
 */
export function runningTime(seconds) {
  if (!known(seconds)) return DASH;
  const rest = Math.max(0, seconds);
  if (rest < 60) return withUnit(Math.floor(rest * 10) / 10, "s", 1);
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  if (rest < 3600) return `${Math.floor(rest / 60)}:${two(rest % 60)} min`;
  return `${Math.floor(rest / 3600)}:${two((rest / 60) % 60)}:${two(rest % 60)} h`;
}

/**
 * The local time of day of a Unix time: "14:05:09".
 * @param {number} milliseconds
 * @returns {string}
 */
export function timeOfDay(milliseconds) {
  const date = new Date(milliseconds);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/**
 * A device name without the words that every name of its vendor starts with, and without what a badge says anyway.
 * @param {string} name
 * @returns {string}
 */
export function shortName(name) {
  const short = name.replace(/^(Advanced Micro Devices|AMD|NVIDIA|Intel)(\(R\)|,? Inc\.|,? Corporation)?\s+/i, "")
    .replace(/^(Radeon|GeForce)\s+/i, "").replace(/\s+\(simulated\)$/i, "");
  return short || name;
}
