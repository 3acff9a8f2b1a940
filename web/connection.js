// The WebSocket: opens, subscribes, pauses in a hidden tab, notices silence, and comes back after a loss.

const PROTOCOL = "gputap.v1";
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15000;
const HIDDEN_PAUSE_MS = 5000;
const WATCH_MS = 5000;
const PING_AFTER_MS = 10000;
const DROP_AFTER_MS = 20000;
/** Only a connection that lasted this long resets the back-off, so that a bridge that always hangs up is not hammered. */
const STABLE_MS = 5000;

/**
 * How long to wait before the next attempt: 0.5 s doubling to 15 s, spread by a quarter so that many pages do not come at once.
 * @param {number} attempt 0 for the first
 * @param {() => number} [random]
 * @returns {number} milliseconds
 */
export function retryDelay(attempt, random = Math.random) {
  const base = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
  return Math.round(Math.min(LONGEST_RETRY_MS, base * (0.75 + 0.5 * random())));
}

/**
 * Fires `message` (a MessageEvent whose data is the parsed message) and `status`.
 * `status` is "connecting", "open", "waiting" (then `retryAt` is a local time) or "token" (the bridge wants one).
 */
export class Connection extends EventTarget {
  /**
   * @param {Object} options
   * @param {string} options.base address of the page; `ws` and `api/` are looked for beside it
   * @param {{period: number, set: string, processes: boolean}} options.subscription
   * @param {() => {seconds: number, points: number}} options.history what to ask for on connect and on resume
   * @param {?string} [options.token]
   */
  constructor({ base, subscription, history, token = null }) {
    super();
    this.base = base;
    this.subscription = subscription;
    this.history = history;
    this.token = token;
    this.status = "connecting";
    this.retryAt = null;
    this.tokenRefused = false;
    /** whether an attempt failed since the last success: only then is "connecting" worth a warning */
    this.failed = false;
  }

  #socket = null;
  #attempt = 0;
  #byeDelay = null;
  #retryTimer = null;
  #hiddenTimer = null;
  #watchTimer = null;
  #paused = false;
  #heardAt = 0;
  #pingId = 0;

  /** Opens the connection and keeps it open. */
  start() {
    document.addEventListener("visibilitychange", () => this.#visibilityChanged());
    addEventListener("online", () => this.retryNow());
    if (document.hidden) this.#visibilityChanged();
    this.#connect();
  }

  /** Tries at once where the connection is waiting to try again. */
  retryNow() {
    if (this.status === "waiting") this.#connect();
  }

  /**
   * Uses another token and tries again.
   * @param {string} token
   */
  useToken(token) {
    this.token = token;
    this.#attempt = 0;
    this.#connect();
  }

  /**
   * Changes some of what is subscribed to; the bridge answers with a new hello and snapshot.
   * @param {Object} changes
   */
  subscribe(changes) {
    this.subscription = { ...this.subscription, ...changes };
    if (this.status === "open") this.#send({ type: "sub", ...this.subscription });
  }

  /** Asks for the history that the page wants now. */
  requestHistory() {
    this.#send({ type: "history", ...this.history() });
  }

  /**
   * A document of the HTTP API.
   * @param {string} path such as "snapshot"
   * @returns {Promise<Object>}
   */
  async fetchDocument(path) {
    const response = await this.#request(path);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.json();
  }

  #request(path) {
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    return fetch(new URL(`api/v1/${path}`, this.base), { headers, cache: "no-store" });
  }

  #connect() {
    clearTimeout(this.#retryTimer);
    this.#setStatus("connecting");
    const address = new URL("ws", this.base);
    address.protocol = address.protocol.replace("http", "ws");
    const protocols = this.token ? [PROTOCOL, `token.${this.token}`] : [PROTOCOL];
    let socket;
    try {
      socket = new WebSocket(address, protocols);
    } catch {
      // A token with characters that a header cannot carry is refused by the browser itself.
      this.#wantToken();
      return;
    }
    this.#socket = socket;
    this.#byeDelay = null;
    let openedAt = null;
    socket.onopen = () => {
      openedAt = Date.now();
      this.#opened();
    };
    socket.onmessage = (event) => this.#received(event.data);
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      if (openedAt !== null && Date.now() - openedAt > STABLE_MS) this.#attempt = 0;
      this.#closed(openedAt !== null);
    };
  }

  #opened() {
    this.#heardAt = Date.now();
    this.#paused = false;
    this.tokenRefused = false;
    this.failed = false;
    this.#setStatus("open");
    this.#send({ type: "sub", ...this.subscription });
    this.requestHistory();
    if (document.hidden && this.#hiddenTimer === null) this.#pause();
    this.#watchTimer = setInterval(() => this.#watch(), WATCH_MS);
  }

  #received(text) {
    this.#heardAt = Date.now();
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      return;
    }
    if (message?.type === "bye" && Number.isFinite(message.retry_ms)) this.#byeDelay = message.retry_ms;
    this.dispatchEvent(new MessageEvent("message", { data: message }));
  }

  async #closed(wasOpen) {
    clearInterval(this.#watchTimer);
    this.#socket = null;
    if (!wasOpen && await this.#tokenIsWanted()) {
      this.#wantToken();
      return;
    }
    const delay = this.#byeDelay ?? retryDelay(this.#attempt++);
    this.failed = true;
    this.retryAt = Date.now() + delay;
    this.#setStatus("waiting");
    this.#retryTimer = setTimeout(() => {
      // Nobody looks at a hidden tab; it tries again when it is shown.
      if (!document.hidden) this.#connect();
    }, delay);
  }

  /** A browser does not say why an upgrade failed; the HTTP side does. */
  async #tokenIsWanted() {
    try {
      return (await this.#request("hello")).status === 401;
    } catch {
      return false;
    }
  }

  #wantToken() {
    this.tokenRefused = Boolean(this.token);
    this.#setStatus("token");
  }

  /** A sleeping laptop or a dead route leaves a socket that looks open. */
  #watch() {
    const silence = Date.now() - this.#heardAt;
    if (silence > DROP_AFTER_MS) this.#drop();
    else if (silence > PING_AFTER_MS) this.#send({ type: "ping", id: ++this.#pingId });
  }

  /** close() on a dead route waits long for the other side; this page need not. */
  #drop() {
    const socket = this.#socket;
    if (!socket) return;
    socket.onclose = socket.onmessage = null;
    socket.close();
    this.#closed(true);
  }

  #visibilityChanged() {
    clearTimeout(this.#hiddenTimer);
    this.#hiddenTimer = null;
    if (document.hidden) {
      this.#hiddenTimer = setTimeout(() => {
        this.#hiddenTimer = null;
        this.#pause();
      }, HIDDEN_PAUSE_MS);
    } else if (this.#paused) {
      this.#paused = false;
      this.#send({ type: "resume" });
      this.requestHistory();
    } else {
      this.retryNow();
    }
  }

  #pause() {
    if (this.status !== "open" || this.#paused) return;
    this.#paused = true;
    this.#send({ type: "pause" });
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #setStatus(status) {
    this.status = status;
    this.dispatchEvent(new Event("status"));
  }
}
