// The rows of the table of ended spans: one a span and GPU, their order, and the same as text for other programs.

import { DASH, byteCount, energy, fixed, known, timeOfDay, withUnit } from "./format.js";

/**
 * @typedef {Object} Column
 * @property {string} key
 * @property {(row: Object) => *} value what it is sorted by and what CSV has; null = unknown
 * @property {(row: Object) => string} text
 * @property {boolean} number
 * @property {string} [unit] of the value, for the head of a CSV column
 */

/** Seconds of a span with three digits or more: "0.42 s", "12.3 s", "245 s". */
export function secondsText(seconds) {
  return known(seconds) ? withUnit(seconds, "s", seconds < 10 ? 2 : seconds < 100 ? 1 : 0) : DASH;
}

/** Joules; below 10 J a decimal says more. */
function joules(value) {
  return known(value) && Math.abs(value) < 10 ? withUnit(value, "J", 1) : energy(value);
}

const textColumn = (key) => ({ key, value: (row) => row[key] || null, text: (row) => row[key] || DASH, number: false });
const numberColumn = (key, unit, text) => ({ key, unit, value: (row) => row[key], text: (row) => text(row[key]), number: true });

/** @type {Column[]} */
export const COLUMNS = [
  numberColumn("ended", "", (t) => (known(t) ? timeOfDay(t) : DASH)),
  textColumn("name"),
  textColumn("node"),
  textColumn("job"),
  textColumn("label"),
  numberColumn("gpu", "", (gpu) => fixed(gpu)),
  numberColumn("seconds", "s", secondsText),
  numberColumn("energy", "J", joules),
  numberColumn("net_energy", "J", joules),
  numberColumn("busy_mean", "%", (value) => withUnit(value, "%")),
  numberColumn("vram_peak", "B", byteCount),
  numberColumn("temperature_peak", "°C", (value) => withUnit(value, "°C")),
  { key: "flags", value: (row) => row.flags.join(" ") || "", text: (row) => row.flags.join(" "), number: false },
];

const FLAGS = ["partial", "estimated", "shared"];
const number = (value) => (known(value) ? value : null);

function row(span, usage, place) {
  const flags = [span.abandoned ? "abandoned" : null, ...FLAGS.filter((flag) => usage?.[flag] === true)];
  return {
    key: `${span.key}/${usage?.gpu ?? ""}`, place, ended: number(span.t), name: span.name, node: span.node, job: span.job, label: span.label,
    gpu: number(usage?.gpu), seconds: number(span.seconds) ?? number(usage?.seconds), energy: number(usage?.energy), net_energy: number(usage?.net_energy),
    busy_mean: number(usage?.busy_mean), unified: known(usage?.unified_peak), vram_peak: number(usage?.unified_peak) ?? number(usage?.vram_peak),
    temperature_peak: number(usage?.temperature_peak), flags: flags.filter(Boolean),
  };
}

/**
 * One row a span and GPU; a span whose usage is not known (yet) has one row of dashes.
 * @param {Object[]} spans of Sessions.finished
 * @returns {Object[]}
 */
export function finishedRows(spans) {
  return spans.flatMap((span, place) => {
    const usages = [...span.usage.values()].sort((a, b) => a.gpu - b.gpu);
    return usages.length === 0 ? [row(span, null, place)] : usages.map((usage) => row(span, usage, place));
  });
}

const collator = new Intl.Collator(undefined, { numeric: true });

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}

/**
 * Sorted copies; what is unknown comes last in both directions, equal rows with the newest first.
 * @param {Object[]} rows in the order of their arrival
 * @param {string} key of a column
 * @param {boolean} descending
 * @returns {Object[]}
 */
export function sortRows(rows, key, descending) {
  const { value } = COLUMNS.find((column) => column.key === key);
  const decorated = rows.map((item) => ({ item, value: value(item) }));
  decorated.sort((a, b) => {
    if ((a.value === null) !== (b.value === null)) return a.value === null ? 1 : -1;
    const order = a.value === null ? 0 : compare(a.value, b.value);
    return (descending ? -order : order) || b.item.ended - a.item.ended || b.item.place - a.item.place || a.item.gpu - b.item.gpu;
  });
  return decorated.map(({ item }) => item);
}

/** A spreadsheet takes a text that begins like this for a formula; names come from other programs. */
const FORMULA = /^[=+\-@\t\r]/;

function csvCell(value) {
  if (value === null) return "";
  const text = typeof value === "number" ? String(value) : FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * RFC 4180, numbers unrounded in the units of the head, unknown ones empty, times in ISO 8601.
 * @param {Object[]} rows
 * @returns {string}
 */
export function toCsv(rows) {
  const head = COLUMNS.map(({ key, unit }) => (unit ? `${key} (${unit})` : key));
  const value = (column, item) => (column.key === "ended" && known(item.ended) ? new Date(item.ended).toISOString() : column.value(item));
  const lines = rows.map((item) => COLUMNS.map((column) => csvCell(value(column, item))));
  return [head.map(csvCell), ...lines].map((cells) => cells.join(",")).join("\r\n") + "\r\n";
}

function markdownCell(text) {
  return text.replace(/[\r\n]+/g, " ").replace(/[\\|`*_<>[\]]/g, "\\$&");
}

/**
 * A table of Markdown with the texts that the page shows.
 * @param {Object[]} rows
 * @param {string[]} titles of the columns
 * @returns {string}
 */
export function toMarkdown(rows, titles) {
  const line = (cells) => `| ${cells.map(markdownCell).join(" | ")} |\n`;
  const rule = `|${COLUMNS.map((column) => (column.number ? " ---: |" : " --- |")).join("")}\n`;
  return line(titles) + rule + rows.map((item) => line(COLUMNS.map((column) => column.text(item)))).join("");
}
