// "Running now": a row a session, below it its open spans as a tree.

import { Keyed, el, setAttribute, setStyle, setText } from "./dom.js";
import { byteCount, fixed, known, runningTime, timeOfDay, withUnit } from "./format.js";
import { progress, spanTree } from "./sessions.js";
import { t } from "./i18n.js";

const DEEPEST_INDENT = 8;
const GAUGES = ["allocated", "reserved", "dynamic"];

/** The strip. Hidden while there is nothing to tell. */
export class Running {
  constructor() {
    this.list = el("ul", { class: "sessions" });
    this.idle = el("ul", { class: "idle-sessions", "aria-label": t("running.idle") });
    this.note = el("p", { class: "note" });
    this.element = el("section", { class: "panel-section running", "data-testid": "running", "aria-labelledby": "running-title", hidden: true },
      el("h2", { id: "running-title" }, t("running.title")), this.list, this.idle, this.note);
    this.busyItems = new Keyed(this.list, () => new SessionRow());
    this.idleItems = new Keyed(this.idle, () => new IdleSession());
  }

  /**
   * @param {Object} sessions of the store
   * @param {number} now the server's time
   */
  update(sessions, now) {
    const busy = sessions.running.filter((session) => session.spans?.length > 0);
    const idle = sessions.running.filter((session) => !(session.spans?.length > 0));
    this.busyItems.update(busy.map((session) => [sessionKey(session), { session, now }]));
    this.idleItems.update(idle.map((session) => [sessionKey(session), session]));
    setAttribute(this.element, "hidden", sessions.running.length === 0 && sessions.hidden === 0);
    setAttribute(this.list, "hidden", busy.length === 0);
    setAttribute(this.idle, "hidden", idle.length === 0);
    setAttribute(this.note, "hidden", sessions.hidden === 0);
    setText(this.note, sessions.hidden === 0 ? "" : t("running.hidden", { count: sessions.hidden }));
  }
}

const sessionKey = ({ slot, generation }) => `${slot}/${generation}`;
const nameOf = (session) => session.label || session.comm || t("running.unnamed");

function processText({ comm, pid }) {
  return [comm, known(pid) ? t("running.pid", { pid }) : null].filter(Boolean).join(" ");
}

/** What the session's own allocator holds: "GPU 0: 3.2 GB allocated, 4.0 GB reserved". */
function gaugeText(gauges) {
  return (gauges ?? []).flatMap((gauge) => {
    const parts = GAUGES.filter((name) => known(gauge[name])).map((name) => t(`running.${name}`, { bytes: byteCount(gauge[name]) }));
    return parts.length > 0 ? [t("running.gauge", { gpu: fixed(gauge.gpu), parts: parts.join(", ") })] : [];
  }).join(" · ");
}

/** A session with open spans. */
class SessionRow {
  constructor() {
    this.label = el("strong");
    this.process = el("span", { class: "quiet" });
    this.gauges = el("span", { class: "quiet" });
    this.spans = el("ul", { class: "spans" });
    this.element = el("li", { class: "session", "data-testid": "session" }, el("div", { class: "session-head" }, this.label, " ", this.process, " ", this.gauges), this.spans);
    this.items = new Keyed(this.spans, () => new SpanRow());
  }

  update({ session, now }) {
    setText(this.label, nameOf(session));
    setText(this.process, processText(session));
    setText(this.gauges, gaugeText(session.gauges));
    this.items.update(spanTree(session.spans).map(({ span, depth }) => [span.id, { span, depth, now }]));
  }
}

/** A session that has none. */
class IdleSession {
  constructor() {
    this.label = el("span");
    this.process = el("span", { class: "quiet" });
    this.element = el("li", { "data-testid": "session" }, this.label, " ", this.process);
  }

  update(session) {
    setText(this.label, nameOf(session));
    setText(this.process, [processText(session), gaugeText(session.gauges)].filter(Boolean).join(" · "));
    setAttribute(this.element, "title", known(session.since) ? t("running.since", { time: timeOfDay(session.since) }) : null);
  }
}

/** One open span. */
class SpanRow {
  constructor() {
    this.name = el("span", { class: "span-name" });
    this.place = el("span", { class: "span-place quiet" });
    this.fill = el("span", { class: "bar-fill" });
    this.track = el("div", { class: "bar-track", role: "progressbar", "aria-valuemin": 0 }, this.fill);
    this.steps = el("span", { class: "span-steps" });
    this.seconds = el("span", { class: "span-seconds" });
    this.gpus = el("span", { class: "span-gpus quiet" });
    this.element = el("li", { class: "span", "data-testid": "span" }, el("div", { class: "span-title" }, this.name, " ", this.place), this.track, this.steps, " ", this.seconds, " ", this.gpus);
  }

  update({ span, depth, now }) {
    const name = span.name || span.node || t("running.unnamed");
    setStyle(this.element, "--depth", String(Math.min(depth, DEEPEST_INDENT)));
    setText(this.name, name);
    setText(this.place, [span.node && span.name ? t("running.node", { node: span.node }) : null, span.job ? t("running.job", { job: span.job }) : null].filter(Boolean).join(" · "));
    this.#showProgress(span, name);
    setText(this.seconds, runningTime(known(span.start) ? (now - span.start) / 1000 : span.seconds));
    setText(this.gpus, gpusText(span));
    setAttribute(this.gpus, "title", span.shared === true ? t("flag.shared.help") : null);
  }

  #showProgress(span, name) {
    const part = progress(span);
    const text = part === null ? "" : `${steps(span.value)} / ${steps(span.max)}`;
    setText(this.steps, text);
    setAttribute(this.track, "hidden", part === null);
    setStyle(this.fill, "--fill", part === null ? "0" : part.toFixed(3));
    setAttribute(this.track, "aria-label", t("running.progress", { name }));
    setAttribute(this.track, "aria-valuemax", part === null ? null : span.max);
    setAttribute(this.track, "aria-valuenow", part === null ? null : Math.min(span.value, span.max));
    setAttribute(this.track, "aria-valuetext", part === null ? null : `${text}, ${withUnit(part * 100, "%")}`);
  }
}

/** Whole numbers as they are, others with one decimal. */
function steps(value) {
  return fixed(value, Number.isInteger(value) ? 0 : 1);
}

function gpusText(span) {
  const gpus = Array.isArray(span.gpus) ? t("running.gpus", { gpus: span.gpus.join(", ") }) : t("running.allGpus");
  return span.shared === true ? `${gpus} · ${t("flag.shared")}` : gpus;
}
