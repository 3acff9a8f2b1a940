// Who holds the GPUs: a table of processes, and what is to be said of those that are not in it.

import { Keyed, el, setAttribute, setText } from "./dom.js";
import { DASH, byteCount, known, withUnit } from "./format.js";
import { t } from "./i18n.js";

/**
 * A column: its key is the bridge's name of the number. `needed` are shown always, others where a row has something there.
 * @typedef {{key: string, kind: "name"|"number"|"text"|"bytes"|"busy", needed: boolean}} Column
 */
const column = (key, kind, needed = true) => ({ key, kind, needed });

/** @type {Column[]} */
const COLUMNS = [
  column("comm", "name"), column("gpu", "number"), column("pid", "number"), column("vram", "bytes"), column("gtt", "bytes"),
  column("gfx_busy", "busy"), column("compute_busy", "busy"), column("encode_busy", "busy"), column("decode_busy", "busy"),
  column("media_busy", "busy", false), column("container", "text"), column("uid", "number"),
];

const amount = (value) => (known(value) ? value : -1);

/**
 * The rows of all GPUs: the largest of each first, what is unknown last.
 * @param {Object[]} gpus as the bridge sends them
 * @param {Map<number, string>} labels of sessions by process
 * @returns {Object[]}
 */
export function processRows(gpus, labels) {
  return gpus.flatMap(({ gpu, rows }) => (Array.isArray(rows) ? rows : [])
    .filter((row) => row && typeof row === "object")
    .sort((a, b) => amount(b.vram) - amount(a.vram))
    .map((row) => ({ ...row, gpu, key: `${gpu}/${row.pid}/${row.start}`, label: labels.get(row.pid) })));
}

/**
 * What the table does not show, as keys and parameters of texts.
 * @param {Object[]} gpus
 * @returns {{key: string, parameters: Object}[]}
 */
export function processNotes(gpus) {
  if (gpus.length > 0 && gpus.every(({ rows }) => !Array.isArray(rows))) return [{ key: "processes.notLookedAtAll", parameters: {} }];
  return gpus.flatMap(gpuNotes);
}

function gpuNotes({ gpu, rows, others, hidden, hidden_vram: hiddenVram, partial, external }) {
  const note = (key, parameters = {}) => ({ key: `processes.${key}`, parameters: { gpu, ...parameters } });
  if (!Array.isArray(rows)) return [note("notLooked")];
  const notes = [];
  if (rows.length === 0 && !(others?.count > 0) && !(hidden > 0)) notes.push(note("none"));
  if (others?.count > 0) notes.push(note("others", { count: others.count, vram: byteCount(others.vram), gtt: byteCount(others.gtt) }));
  if (hidden > 0) notes.push(note("hidden", { count: hidden }));
  if (hidden > 0 && hiddenVram > 0) notes.push(note("hiddenVram", { bytes: byteCount(hiddenVram) }));
  if (partial === true) notes.push(note("partial"));
  if (external > 0) notes.push(note("external", { bytes: byteCount(external) }));
  return notes;
}

/** The panel. Hidden while there is no GPU, or this page was never told of processes. */
export class Processes {
  /**
   * @param {Object} options
   * @param {boolean} options.open
   * @param {(open: boolean) => void} options.onToggle
   */
  constructor({ open, onToggle }) {
    this.count = el("span", { class: "quiet" });
    this.heads = COLUMNS.map(({ key, kind }) => el("th", { scope: "col", class: isNumber(kind) ? "number" : null, title: t(`processes.column.${key}.help`), "data-column": key },
      t(`processes.column.${key}`)));
    this.body = el("tbody");
    this.lines = new Keyed(this.body, () => new ProcessLine());
    // It scrolls by itself, so the keyboard must be able to reach it.
    this.frame = el("div", { class: "table-frame", role: "region", "aria-labelledby": "processes-title", tabindex: 0 },
      el("table", { "aria-labelledby": "processes-title" }, el("thead", {}, el("tr", {}, ...this.heads)), this.body));
    this.noteList = el("ul", { class: "notes" });
    this.notes = new Keyed(this.noteList, () => new Note());
    this.details = el("details", { open }, el("summary", {}, el("h2", { id: "processes-title" }, t("processes.title")), this.count),
      el("div", { class: "body" }, this.frame, this.noteList));
    this.open = open;
    this.details.addEventListener("toggle", () => {
      if (this.details.open === this.open) return;
      this.open = this.details.open;
      onToggle(this.open);
    });
    this.element = el("section", { class: "panel-section processes", "data-testid": "processes", "aria-labelledby": "processes-title", hidden: true }, this.details);
  }

  /** @param {Object} store */
  update({ gpus, processes, sessions }) {
    setAttribute(this.element, "hidden", gpus.length === 0 || (this.open && processes === null));
    if (processes === null || !this.open) {
      setText(this.count, "");
      return;
    }
    const labels = new Map(sessions.running.map((session) => [session.pid, session.label || session.comm || ""]));
    const rows = processRows(processes, labels);
    const shown = COLUMNS.filter(({ key, needed }) => (key === "gpu" ? gpus.length > 1 : needed || rows.some((row) => known(row[key]))));
    this.heads.forEach((head, place) => setAttribute(head, "hidden", !shown.includes(COLUMNS[place])));
    this.lines.update(rows.map((row) => [row.key, { row, shown }]));
    this.notes.update(processNotes(processes).map((note) => [`${note.key}/${note.parameters.gpu}`, note]));
    setAttribute(this.frame, "hidden", rows.length === 0);
    setAttribute(this.noteList, "hidden", this.notes.items.size === 0);
    setText(this.count, rows.length === 0 ? "" : t("processes.count", { count: rows.length }));
  }
}

const isNumber = (kind) => kind !== "name" && kind !== "text";

/** A process on a GPU. */
class ProcessLine {
  constructor() {
    this.cells = COLUMNS.map(({ key, kind }) => el("td", { class: isNumber(kind) ? "number" : "text", "data-column": kind === "name" ? "name" : key }));
    this.name = el("span");
    this.sharers = el("span", { class: "sharers" });
    this.label = el("span", { class: "session-label" });
    this.cells[0].append(this.name, " ", this.sharers, " ", this.label);
    this.element = el("tr", { "data-testid": "process" }, ...this.cells);
  }

  update({ row, shown }) {
    setAttribute(this.element, "data-own", row.label !== undefined);
    this.#showName(row);
    COLUMNS.forEach((item, place) => {
      setAttribute(this.cells[place], "hidden", !shown.includes(item));
      if (item.kind !== "name") fillCell(this.cells[place], item, row);
    });
  }

  #showName({ comm, sharers, label }) {
    setText(this.name, comm || t("processes.unnamed"));
    setText(this.sharers, sharers > 0 ? t("processes.sharers", { count: sharers }) : "");
    setText(this.label, label ?? "");
    const title = [sharers > 0 ? t("processes.sharers.help", { count: sharers }) : null, label ? t("processes.session", { label }) : null];
    setAttribute(this.cells[0], "title", title.filter(Boolean).join("\n") || null);
  }
}

/** Why there is a dash. */
const UNKNOWN = { bytes: "processes.bytesUnknown", busy: "processes.busyUnknown", text: "processes.noContainer" };

function fillCell(cell, { key, kind }, row) {
  const value = row[key];
  const told = kind === "text" ? typeof value === "string" && value !== "" : known(value);
  const least = told && kind === "bytes" && row.partial === true;
  setText(cell, told ? `${least ? "≥ " : ""}${cellText(kind, value)}` : DASH);
  setAttribute(cell, "data-state", told ? null : "unknown");
  setAttribute(cell, "title", !told ? UNKNOWN[kind] && t(UNKNOWN[kind]) : least ? t("processes.atLeast") : kind === "text" ? value : null);
}

function cellText(kind, value) {
  if (kind === "bytes") return byteCount(value);
  return kind === "busy" ? withUnit(value, "%") : String(value);
}

/** A line below the table. */
class Note {
  constructor() {
    this.element = el("li");
  }

  update({ key, parameters }) {
    setText(this.element, t(key, parameters));
  }
}
