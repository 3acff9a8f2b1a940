// <gputap-capsules>: the bar of capsules. It needs only a store, so it can live in another page's menu as well.

import { el, setAttribute, setStyle, setText } from "./dom.js";
import { fixed, gib, known, shortName, withUnit } from "./format.js";
import { gpuReadings, hostReadings } from "./derive.js";
import { Panel } from "./panel.js";
import { t } from "./i18n.js";

const CLOSE_DELAY_MS = 150;
const NAMES_UP_TO = 4;
const LINES_FROM = 2;
/** States of a device that explain why it has no readings. */
const SILENT_STATES = new Set(["asleep", "hung", "gone"]);

/**
 * What a capsule shows: `parts` are texts of fixed width, `fill` is its meter from 0 to 1.
 * @typedef {{parts: string[], level: string, fill: ?number}} Face
 */
const FACES = {
  cpu: (host) => {
    const { cpu, clock, levels } = hostReadings(host);
    return { parts: [withUnit(cpu, "%", 1), clock > 0 ? `@ ${fixed(clock / 1000, 2)} GHz` : ""], level: levels.cpu, fill: part(cpu, 100) };
  },
  ram: (host) => {
    const { ram, levels } = hostReadings(host);
    return { parts: [withUnit(ram, "%", 1)], level: levels.ram, fill: part(ram, 100) };
  },
  gpu: (gpu) => {
    const { busy, clock, temperature, levels } = gpuReadings(gpu);
    const heat = temperature === null ? "" : `| ${withUnit(temperature, "°C")}`;
    return { parts: [withUnit(busy, "%"), clock > 0 ? `@ ${fixed(clock)} MHz` : "", heat], level: levels.gpu, fill: part(busy, 100) };
  },
  vram: (gpu) => {
    const { memory, levels } = gpuReadings(gpu);
    const nothing = memory.used === null && memory.total === null;
    return { parts: [gib(memory.used), nothing ? "" : `/ ${gib(memory.total)} GB`], level: levels.vram, fill: memory.ratio };
  },
  power: (gpu) => {
    const { power, levels } = gpuReadings(gpu);
    const share = power.ratio === null ? "" : withUnit(power.ratio * 100, "%");
    return { parts: [withUnit(power.watts, "W"), share], level: levels.power, fill: power.ratio };
  },
};

const PART_COUNT = { cpu: 2, ram: 1, gpu: 3, vram: 2, power: 2 };

function part(value, whole) {
  return known(value) ? value / whole : null;
}

/** The bar. Give it a store by `store`; call `rebuild` when the language changed. */
export class GputapCapsules extends HTMLElement {
  #store = null;
  #capsules = [];
  #panel = new Panel();
  #closeTimer = null;
  #dismissed = null;
  #openAtPress = null;
  #onChange = () => this.#schedule();
  #onShape = () => this.rebuild();
  #scheduled = false;
  #outside = new AbortController();
  #shape = "";

  connectedCallback() {
    if (!this.shadowRoot) {
      const root = this.attachShadow({ mode: "open" });
      const sheets = ["tokens.css", "capsules.css"].map((file) => el("link", { rel: "stylesheet", href: new URL(file, import.meta.url).href }));
      this.bar = el("div", { class: "bar", role: "toolbar" });
      // Without its styles the bar would flash as plain buttons.
      this.bar.style.visibility = "hidden";
      for (const event of ["load", "error"]) sheets.at(-1).addEventListener(event, () => { this.bar.style.visibility = ""; });
      root.append(...sheets, this.bar, this.#panel.element);
      this.#listen(root);
    }
    this.#listenOutside();
    this.rebuild();
  }

  disconnectedCallback() {
    this.#outside.abort();
    this.#panel.close();
  }

  /** @param {?Object} store a Store, or anything with its fields and events */
  set store(store) {
    this.#store?.removeEventListener("change", this.#onChange);
    this.#store?.removeEventListener("shape", this.#onShape);
    this.#store = store;
    store?.addEventListener("change", this.#onChange);
    store?.addEventListener("shape", this.#onShape);
    this.rebuild();
  }

  get store() {
    return this.#store;
  }

  /** Makes the capsules anew: after the set of devices or the language changed. */
  rebuild() {
    if (!this.bar || !this.#store) return;
    const shape = JSON.stringify([t("capsules.label"), t("capsule.gpu"), this.#store.gpus.map((gpu) => [gpu.index, gpu.device.name])]);
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#panel.close();
      this.#build(this.#store.gpus);
    }
    this.#update();
  }

  #build(gpus) {
    this.#capsules = [];
    setAttribute(this.bar, "aria-label", t("capsules.label"));
    setAttribute(this.bar, "data-lines", gpus.length >= LINES_FROM);
    const host = el("div", { class: "group host", role: "group", "aria-label": t("system.title") }, this.#capsule("cpu", null), this.#capsule("ram", null));
    const groups = gpus.map((gpu) => {
      const capsules = ["gpu", "vram", "power"].map((kind) => this.#capsule(kind, gpu.index));
      const label = gpus.length > 1 ? groupLabel(gpu, gpus.length <= NAMES_UP_TO) : null;
      return el("div", { class: "group", role: "group", "aria-label": `GPU ${gpu.index} ${gpu.device.name}`, "data-gpu": gpu.index }, label, ...capsules);
    });
    this.bar.replaceChildren(host, ...groups);
  }

  #capsule(kind, index) {
    const parts = Array.from({ length: PART_COUNT[kind] }, (_, i) => el("span", { class: `part part-${i}` }));
    const level = el("span", { class: "sr" });
    // Blanks between the parts: they are laid out by width, but read, copied and found as one text.
    const text = parts.flatMap((element) => [" ", element]);
    const button = el("button", {
      type: "button", class: `capsule ${kind}`, "data-testid": `capsule-${kind}`, "data-metric": kind, "data-gpu": index,
      "aria-expanded": "false", "aria-controls": "gputap-panel",
    }, el("span", { class: "mark", "aria-hidden": "true" }), el("span", { class: "label" }, t(`capsule.${kind}`)), ...text, level);
    this.#capsules.push({ kind, index, button, parts, level });
    return button;
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#update();
    });
  }

  #update() {
    const store = this.#store;
    if (!store || !this.bar) return;
    setAttribute(this, "data-feed", store.feed ?? "none");
    const byIndex = new Map(store.gpus.map((gpu) => [gpu.index, gpu]));
    for (const capsule of this.#capsules) {
      const source = capsule.index === null ? store.host : byIndex.get(capsule.index);
      if (source) paint(capsule, source);
    }
    this.#panel.update(store);
  }

  #listen(root) {
    const find = (event) => {
      const button = event.target.closest?.(".capsule");
      return button ? this.#capsules.find((capsule) => capsule.button === button) : null;
    };
    this.bar.addEventListener("pointerover", (event) => {
      const capsule = find(event);
      if (event.pointerType !== "touch" && capsule && this.#dismissed !== capsule.button) this.#show(capsule);
    });
    this.bar.addEventListener("pointerout", (event) => {
      if (event.pointerType === "touch") return;
      if (this.#dismissed && !this.#dismissed.contains(event.relatedTarget)) this.#dismissed = null;
      this.#closeSoon();
    });
    this.#panel.element.addEventListener("pointerenter", () => clearTimeout(this.#closeTimer));
    this.#panel.element.addEventListener("pointerleave", () => this.#closeSoon());
    this.bar.addEventListener("focusin", (event) => {
      const capsule = find(event);
      if (capsule) this.#show(capsule);
    });
    root.addEventListener("focusout", (event) => {
      this.#dismissed = null;
      if (!root.contains(event.relatedTarget)) this.#panel.close();
    });
    this.#listenToTaps(find);
    this.#listenToKeys(root);
  }

  /** A tap both focuses and clicks; only a tap on a capsule whose panel was open before it closes the panel. */
  #listenToTaps(find) {
    this.bar.addEventListener("pointerdown", (event) => {
      this.#openAtPress = event.pointerType === "touch" ? this.#panel.anchor : null;
    });
    this.bar.addEventListener("click", (event) => {
      const capsule = find(event);
      if (!capsule) return;
      if (this.#openAtPress === capsule.button) this.#panel.close();
      else this.#show(capsule);
      this.#openAtPress = null;
    });
  }

  /** On the document: a panel opened by the pointer has no focus to hear a key with. */
  #listenOutside() {
    this.#outside = new AbortController();
    const { signal } = this.#outside;
    document.addEventListener("pointerdown", (event) => {
      if (this.#panel.open && !event.composedPath().includes(this)) this.#panel.close();
    }, { signal });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#panel.open) return;
      this.#dismissed = this.#panel.anchor;
      this.#panel.close();
    }, { signal });
    addEventListener("scroll", () => this.#panel.follow(), { signal, passive: true });
  }

  #listenToKeys(root) {
    this.bar.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const at = this.#capsules.findIndex((capsule) => capsule.button === root.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      this.#capsules[(at + step + this.#capsules.length) % this.#capsules.length].button.focus();
    });
  }

  #show({ button, kind, index }) {
    clearTimeout(this.#closeTimer);
    if (this.#panel.anchor !== button) this.#panel.show(button, kind, index, this.#store);
  }

  /** The pointer needs a moment to reach the panel. A panel whose capsule has the focus stays. */
  #closeSoon() {
    clearTimeout(this.#closeTimer);
    this.#closeTimer = setTimeout(() => {
      const focused = this.#capsules.find((capsule) => capsule.button === this.shadowRoot.activeElement);
      if (focused && focused.button.matches(":focus-visible")) this.#show(focused);
      else this.#panel.close();
    }, CLOSE_DELAY_MS);
  }
}

function groupLabel(gpu, withName) {
  const name = withName ? el("span", { class: "name" }, shortName(gpu.device.name)) : null;
  return el("span", { class: "number", title: gpu.device.name }, el("b", {}, String(gpu.index)), name);
}

function paint({ kind, button, parts, level }, source) {
  const face = FACES[kind](source);
  const silent = face.level === "unknown" && SILENT_STATES.has(source.state);
  const state = silent ? source.state : face.level;
  if (silent && kind === "gpu") face.parts[1] = t(`state.${state}`);
  face.parts.forEach((text, i) => setText(parts[i], text));
  setText(level, state === "ok" ? "" : ` (${t(`level.${state}`)})`);
  setAttribute(button, "data-state", state);
  setStyle(button, "--fill", face.fill === null ? "0" : Math.min(1, Math.max(0, face.fill)).toFixed(2));
}

if (!customElements.get("gputap-capsules")) customElements.define("gputap-capsules", GputapCapsules);
