// The dashboard: joins connection, store and views, and draws once a frame at most.

import "./capsules.js";
import { Banners, feedState } from "./banners.js";
import { GpuCard, SystemCard, noGpuCard } from "./cards.js";
import { Connection } from "./connection.js";
import { el, setAttribute } from "./dom.js";
import { Finished } from "./finished.js";
import { read, startLanguage, useLanguage, write } from "./i18n.js";
import { Processes } from "./processes.js";
import { Running } from "./running.js";
import { Store } from "./store.js";
import { TopBar } from "./topbar.js";

const PERIOD_MS = 500;
const COMPACT_FROM = 3;
const STICKY_UP_TO = 4;
const HISTORY_POINTS = 300;
const REASONS_EVERY_MS = 3000;
const WINDOW_KEY = "gputap.window";
const PROCESSES_KEY = "gputap.processes";
const TOKEN_KEY = "gputap.token";
const WINDOWS = [60, 300, 900];

const place = (id) => document.getElementById(id);

class Dashboard {
  constructor() {
    this.seconds = WINDOWS.find((seconds) => String(seconds) === read(WINDOW_KEY)) ?? 300;
    this.showProcesses = read(PROCESSES_KEY) !== "closed";
    this.store = new Store();
    this.connection = new Connection({
      base: document.baseURI,
      subscription: { period: PERIOD_MS, set: "full", processes: this.showProcesses },
      history: () => ({ seconds: this.seconds, points: HISTORY_POINTS }),
      token: sessionToken(),
    });
    this.capsules = el("gputap-capsules");
    this.scheduled = false;
    this.reasonsAskedAt = 0;
    this.applySlice();
  }

  start() {
    this.build();
    place("capsules").replaceChildren(this.capsules);
    this.capsules.store = this.store;
    this.store.addEventListener("shape", () => this.buildCards());
    this.store.addEventListener("change", () => this.schedule());
    this.connection.addEventListener("message", (event) => this.hear(event.data));
    this.connection.addEventListener("status", () => {
      if (this.connection.status === "open") this.fetchFinished();
      this.schedule();
    });
    this.connection.start();
    // Ages and countdowns move on without messages.
    setInterval(() => document.hidden || this.schedule(), 1000);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.schedule());
  }

  build() {
    this.topBar = new TopBar({
      seconds: this.seconds,
      onWindow: (seconds) => this.useWindow(seconds),
      onLanguage: (language) => this.switchLanguage(language),
      onTheme: () => this.schedule(),
    });
    this.banners = new Banners({ retry: () => this.connection.retryNow(), useToken: (token) => this.useToken(token) });
    place("top").replaceChildren(...this.topBar.elements);
    place("banners").replaceChildren(...this.banners.elements);
    this.running = new Running();
    this.finished = new Finished(this.finished?.sort);
    this.processes = new Processes({ open: this.showProcesses, onToggle: (open) => this.toggleProcesses(open) });
    place("running").replaceChildren(this.running.element);
    place("processes").replaceChildren(this.processes.element);
    place("finished").replaceChildren(this.finished.element);
    this.buildCards();
  }

  buildCards() {
    const { store } = this;
    const shape = JSON.stringify([store.gpus.map((gpu) => gpu.device), store.hello?.system, document.documentElement.lang, store.hello?.epoch != null]);
    if (shape !== this.cardShape) {
      this.cardShape = shape;
      this.gpuCards = store.gpus.map((gpu) => new GpuCard(gpu, store.gpus.length > COMPACT_FROM));
      this.systemCard = new SystemCard(store.host, store.hello);
      const empty = store.gpus.length === 0 && store.hello?.epoch != null ? [noGpuCard()] : [];
      const hasNumbers = store.hello && (store.hello.epoch != null || store.gpus.length > 0);
      const cards = [...this.gpuCards, this.systemCard].map((card) => card.element);
      place("cards").replaceChildren(...(hasNumbers ? [...empty, ...cards] : []));
      setAttribute(place("capsules"), "data-tall", store.gpus.length > STICKY_UP_TO);
      setAttribute(place("cards"), "data-gpus", store.gpus.length);
    }
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.draw();
    });
  }

  draw() {
    const { store, connection } = this;
    const state = feedState(store, connection);
    const live = state === "live";
    setAttribute(document.documentElement, "data-feed", state);
    setAttribute(this.capsules, "data-dim", !live);
    for (const id of ["cards", "running", "processes"]) setAttribute(place(id), "data-dim", !live);
    // What a broker that is gone last said is still running does not go on running.
    if (live) this.liveAt = store.serverNow;
    this.running.update(store.sessions, this.liveAt ?? store.serverNow);
    this.processes.update(store);
    this.finished.update(store.sessions);
    this.topBar.update(store, state);
    this.banners.update(store, connection);
    // Without samples time still passes: the gap at the right edge grows.
    const newest = Math.max(0, ...[store.host, ...store.gpus].map((source) => source.series.points.at(-1)?.t ?? 0));
    const to = live && newest > 0 ? newest : store.serverNow;
    const view = { from: to - this.seconds * 1000, to, periodMs: PERIOD_MS };
    for (const card of [...this.gpuCards, this.systemCard]) {
      card.update(store.hello);
      card.graph.draw(card.source, view);
    }
    this.askForReasons();
  }

  hear(message) {
    this.store.apply(message);
    // Spans that ended unheard: the bridge keeps the last ones.
    if (message?.type === "gap" && message.events > 0) this.fetchFinished();
  }

  async fetchFinished() {
    try {
      this.store.takeSessions(await this.connection.fetchDocument("sessions"));
    } catch {
      // The table then begins with what ends from now on.
    }
  }

  /** Samples carry numbers only; when one went unknown, the snapshot knows why. */
  async askForReasons() {
    const now = Date.now();
    if (!this.store.reasonMissing || this.connection.status !== "open" || now - this.reasonsAskedAt < REASONS_EVERY_MS) return;
    this.reasonsAskedAt = now;
    try {
      this.store.mergeReasons(await this.connection.fetchDocument("snapshot"));
    } catch {
      // The dash is shown without a reason; the next attempt may do better.
    }
  }

  applySlice() {
    this.store.setSlice(Math.max(PERIOD_MS, (this.seconds * 1000) / HISTORY_POINTS));
  }

  useWindow(seconds) {
    this.seconds = seconds;
    write(WINDOW_KEY, String(seconds));
    this.applySlice();
    this.connection.requestHistory();
    this.schedule();
  }

  /** A closed panel costs the bridge nothing. */
  toggleProcesses(open) {
    this.showProcesses = open;
    write(PROCESSES_KEY, open ? "open" : "closed");
    this.connection.subscribe({ processes: open });
  }

  async switchLanguage(language) {
    await useLanguage(language);
    this.build();
    this.capsules.rebuild();
  }

  useToken(token) {
    try {
      sessionStorage.setItem(TOKEN_KEY, token);
    } catch {
      // Without storage the token is asked for again after a reload.
    }
    this.connection.useToken(token);
  }
}

function sessionToken() {
  try {
    return sessionStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

await startLanguage();
new Dashboard().start();
