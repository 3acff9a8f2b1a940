// What the processes of this machine say they do: the sessions now, and the spans that have ended with what they took.

import { known } from "./format.js";

/** Ended spans that are kept, as many as the bridge keeps. */
export const FINISHED_LIMIT = 200;

/**
 * A span that has ended.
 * @typedef {Object} Finished
 * @property {string} key
 * @property {string} name
 * @property {string} node
 * @property {string} job
 * @property {string} label of its session
 * @property {?number} t Unix milliseconds of its end
 * @property {?number} seconds
 * @property {boolean} abandoned
 * @property {Map<number, Object>} usage by GPU
 */

/** Applies the bridge's messages about sessions. Knows nothing of elements. */
export class Sessions {
  constructor() {
    /** the sessions now, as the bridge sent them */
    this.running = [];
    /** how many sessions of other users are not shown */
    this.hidden = 0;
    /** events that the bridge could not send to this page */
    this.missedEvents = 0;
    /** grows whenever the ended spans change, so that a table need not look for itself */
    this.version = 0;
    this.#finished = new Map();
  }

  #finished;

  /** @returns {Finished[]} in the order of their arrival, the newest last */
  get finished() {
    return [...this.#finished.values()];
  }

  /**
   * A snapshot's part, or a message of type `sessions`.
   * @param {Object} message
   */
  apply(message) {
    if (Array.isArray(message.sessions)) this.running = message.sessions.filter((session) => session && typeof session === "object");
    if (known(message.hidden)) this.hidden = message.hidden;
    if (Array.isArray(message.finished)) for (const span of message.finished) this.#takeFinished(span);
  }

  /**
   * A message of type `event`.
   * @param {Object} message
   */
  applyEvents(message) {
    if (!Array.isArray(message.events)) return;
    for (const event of message.events) {
      if (event?.type === "end") this.#end(event, message.epoch);
      else if (event?.type === "usage") this.#use(event, message.epoch);
    }
  }

  #takeFinished(span) {
    if (!span || typeof span !== "object") return;
    const entry = this.#end(span, span.epoch);
    if (Array.isArray(span.usage)) for (const usage of span.usage) takeUsage(entry, usage);
  }

  #end(event, epoch) {
    const entry = this.#entry(event, epoch);
    takeTexts(entry, event);
    if (known(event.t)) entry.t = event.t;
    if (known(event.seconds)) entry.seconds = event.seconds;
    entry.abandoned ||= event.abandoned === true;
    return entry;
  }

  #use(event, epoch) {
    const entry = this.#entry(event, epoch);
    takeTexts(entry, event);
    entry.t ??= known(event.t) ? event.t : null;
    takeUsage(entry, event.usage);
    entry.seconds ??= known(event.usage?.seconds) ? event.usage.seconds : null;
  }

  #entry(event, epoch) {
    const key = [epoch, event.session, event.span].join("/");
    this.version++;
    let entry = this.#finished.get(key);
    if (!entry) {
      entry = { key, name: "", node: "", job: "", label: "", t: null, seconds: null, abandoned: false, usage: new Map() };
      this.#finished.set(key, entry);
      if (this.#finished.size > FINISHED_LIMIT) this.#finished.delete(this.#finished.keys().next().value);
    }
    return entry;
  }
}

function takeTexts(entry, event) {
  for (const name of ["name", "node", "job", "label"]) if (typeof event[name] === "string" && event[name] !== "") entry[name] = event[name];
}

/** A GPU that is no more has no number. */
function takeUsage(entry, usage) {
  if (usage && (Number.isInteger(usage.gpu) || usage.gpu === null)) entry.usage.set(usage.gpu, usage);
}

/**
 * The open spans of a session as a tree in reading order, parents before what they consist of. The processes name the parents, so a
 * circle is possible; what hangs on none is a root.
 * @param {Object[]} spans
 * @returns {{span: Object, depth: number}[]}
 */
export function spanTree(spans) {
  const ids = new Set(spans.map((span) => span.id));
  const children = new Map();
  const roots = [];
  for (const span of spans) {
    const parent = span.parent !== span.id && ids.has(span.parent) ? span.parent : null;
    if (parent === null) roots.push(span);
    else children.set(parent, [...(children.get(parent) ?? []), span]);
  }
  const rows = [];
  const seen = new Set();
  const walk = (span, depth) => {
    if (seen.has(span)) return;
    seen.add(span);
    rows.push({ span, depth });
    for (const child of children.get(span.id) ?? []) walk(child, depth + 1);
  };
  for (const span of [...roots, ...spans]) walk(span, 0);
  return rows;
}

/**
 * How far a span has come.
 * @param {Object} span
 * @returns {?number} 0 to 1, null where that is not known
 */
export function progress({ value, max }) {
  return known(value) && known(max) && max > 0 ? Math.min(1, Math.max(0, value / max)) : null;
}
