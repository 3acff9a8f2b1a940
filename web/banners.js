// What the reader must know before trusting the numbers: no bridge, no broker, old data, simulated data, a token to give.

import { el, setAttribute, setText } from "./dom.js";
import { duration } from "./format.js";
import { t } from "./i18n.js";

/** The column of banners. */
export class Banners {
  /**
   * @param {Object} actions
   * @param {() => void} actions.retry
   * @param {(token: string) => void} actions.useToken
   */
  constructor({ retry, useToken }) {
    this.feedText = el("span", { role: "status", "aria-live": "polite" });
    // The countdown changes every second; read aloud it would be noise.
    this.feedDetail = el("span", { class: "banner-detail", "aria-live": "off" });
    this.command = el("code", {}, "gputapd");
    this.retry = el("button", { type: "button" }, t("banner.retry"));
    this.retry.addEventListener("click", retry);
    this.feed = banner("banner-feed", this.feedText, this.command, this.feedDetail, this.retry);
    this.simulatedText = el("span", { role: "status" });
    this.simulated = banner("banner-simulated", this.simulatedText);
    this.token = this.#tokenForm(useToken);
    this.elements = [this.token, this.feed, this.simulated];
  }

  #tokenForm(useToken) {
    this.tokenText = el("p", { id: "token-text" });
    const input = el("input", { type: "password", name: "token", autocomplete: "current-password", required: true, "aria-label": t("token.label"), "aria-describedby": "token-text" });
    const form = el("form", { class: "banner token", "data-testid": "token-form", hidden: true },
      el("span", { class: "banner-mark", "aria-hidden": "true" }), this.tokenText, input, el("button", { type: "submit" }, t("token.submit")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      useToken(input.value.trim());
    });
    return form;
  }

  /**
   * @param {Object} store
   * @param {Object} connection
   */
  update(store, connection) {
    const state = feedState(store, connection);
    this.#updateFeed(state, store, connection);
    this.simulated.hidden = !store.simulated;
    if (store.simulated) setText(this.simulatedText, simulatedText(store));
    this.token.hidden = connection.status !== "token";
    setText(this.tokenText, t(connection.tokenRefused ? "token.refused" : "token.wanted"));
  }

  #updateFeed(state, store, connection) {
    const hidden = state === "live" || state === "token" || state === "connecting";
    setAttribute(this.feed, "data-state", state);
    this.feed.hidden = hidden;
    setText(this.feedText, hidden ? "" : t(`banner.${state}`));
    this.command.hidden = state !== "dead" && state !== "absent";
    this.retry.hidden = state !== "unreachable";
    const parts = [];
    if (state === "unreachable") {
      const wait = connection.status === "waiting" ? Math.max(0, connection.retryAt - Date.now()) : 0;
      parts.push(t("banner.countdown", { seconds: Math.ceil(wait / 1000) }));
    }
    if (store.age !== null) parts.push(t("banner.age", { age: duration(store.age) }));
    setText(this.feedDetail, parts.join(" "));
  }
}

function banner(id, ...children) {
  return el("div", { class: "banner", "data-testid": id, hidden: true }, el("span", { class: "banner-mark", "aria-hidden": "true" }), ...children);
}

function simulatedText(store) {
  const count = store.gpus.filter((gpu) => gpu.device.simulated).length;
  if (count > 0 && count < store.gpus.length) return t("banner.simulatedSome", { count, total: store.gpus.length });
  return t("banner.simulated");
}

/**
 * One word for how far the numbers can be trusted.
 * @param {Object} store
 * @param {Object} connection
 * @returns {"live"|"stale"|"dead"|"absent"|"unreachable"|"connecting"|"token"}
 */
export function feedState(store, connection) {
  if (connection.status === "token") return "token";
  if (connection.status === "open") return store.feed ?? "connecting";
  return connection.failed ? "unreachable" : "connecting";
}
