// The table of spans that have ended, with what they took.

import { el, setAttribute, setText } from "./dom.js";
import { DASH } from "./format.js";
import { COLUMNS, finishedRows, sortRows, toCsv, toMarkdown } from "./rows.js";
import { t } from "./i18n.js";

const SORT_START = { key: "ended", descending: true };

/** The table with its buttons. Hidden while no span has ended. */
export class Finished {
  /** @param {{key: string, descending: boolean}} [sort] what it is sorted by at first */
  constructor(sort = SORT_START) {
    this.sort = sort;
    this.rows = [];
    this.lines = new Map();
    this.version = null;
    this.status = el("span", { class: "quiet", role: "status" });
    this.body = el("tbody");
    this.heads = COLUMNS.map((column) => this.#head(column));
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...this.heads.map(({ cell }) => cell))), this.body);
    const copy = (kind) => {
      const button = el("button", { type: "button", "data-testid": `copy-${kind}` }, t(`finished.${kind}`));
      button.addEventListener("click", () => this.#copy(kind));
      return button;
    };
    this.element = el("section", { class: "panel-section finished", "data-testid": "finished", "aria-labelledby": "finished-title", hidden: true },
      el("header", {}, el("h2", { id: "finished-title" }, t("finished.title")), this.status, el("div", { class: "tools" }, copy("markdown"), copy("csv"))),
      // It scrolls by itself, so the keyboard must be able to reach it.
      el("div", { class: "table-frame", role: "region", "aria-labelledby": "finished-title", tabindex: 0 }, table));
    this.#showSort();
  }

  #head(column) {
    const button = el("button", { type: "button", title: t(`column.${column.key}.help`) }, t(`column.${column.key}`));
    const cell = el("th", { scope: "col", class: column.number ? "number" : null, "data-column": column.key }, button);
    button.addEventListener("click", () => {
      // Numbers are looked at from the largest on, texts from A on; a second click turns round.
      const descending = this.sort.key === column.key ? !this.sort.descending : column.number;
      this.sort = { key: column.key, descending };
      this.#showSort();
      this.#place();
    });
    return { column, cell };
  }

  #showSort() {
    for (const { column, cell } of this.heads) {
      const active = column.key === this.sort.key;
      setAttribute(cell, "aria-sort", active ? (this.sort.descending ? "descending" : "ascending") : null);
    }
  }

  /** @param {Object} sessions of the store */
  update(sessions) {
    if (this.version === sessions.version) return;
    this.version = sessions.version;
    this.rows = finishedRows(sessions.finished);
    setAttribute(this.element, "hidden", this.rows.length === 0);
    this.#place();
  }

  /** Rows are kept by their key: a new one costs a row, not a table. */
  #place() {
    const sorted = sortRows(this.rows, this.sort.key, this.sort.descending);
    const keys = new Set(sorted.map((row) => row.key));
    for (const [key, line] of this.lines) if (!keys.has(key)) {
      line.remove();
      this.lines.delete(key);
    }
    sorted.forEach((row, place) => {
      const line = this.#line(row);
      if (this.body.children[place] !== line) this.body.insertBefore(line, this.body.children[place] ?? null);
    });
  }

  #line(row) {
    let line = this.lines.get(row.key);
    if (!line) {
      line = el("tr", { "data-testid": "finished-row" }, ...COLUMNS.map((column) => el("td", { class: column.number ? "number" : "text", "data-column": column.key })));
      this.lines.set(row.key, line);
    }
    COLUMNS.forEach((column, place) => fillCell(line.children[place], column, row));
    return line;
  }

  async #copy(kind) {
    const rows = sortRows(this.rows, this.sort.key, this.sort.descending);
    const text = kind === "csv" ? toCsv(rows) : toMarkdown(rows, COLUMNS.map(({ key }) => t(`column.${key}`)));
    const done = await copyText(text);
    setText(this.status, done ? t("finished.copied", { count: rows.length }) : t("finished.notCopied"));
  }
}

function fillCell(cell, column, row) {
  if (column.key === "flags") {
    setText(cell, row.flags.map((flag) => t(`flag.${flag}`)).join(", "));
    setAttribute(cell, "title", row.flags.map((flag) => t(`flag.${flag}.help`)).join("\n") || null);
    return;
  }
  const text = column.text(row);
  setText(cell, text);
  setAttribute(cell, "data-state", text === DASH ? "unknown" : null);
  if (column.key === "vram_peak") setAttribute(cell, "title", row.unified ? t("finished.unified") : null);
  else if (!column.number) setAttribute(cell, "title", text === DASH ? null : text);
}

/** The clipboard is for secure pages only; over plain http from another machine the old way still works. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = el("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
}
