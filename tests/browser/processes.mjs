// Real broker, bridge and browser for the tests, and their removal afterwards.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

export const CHROMIUM = process.env.GPUTAP_CHROMIUM ?? "/usr/bin/chromium";
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const WEB = fileURLToPath(new URL("../../web/", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml" };

/** Why the browser tests cannot run here, or false. */
export async function browserMissing() {
  if (!existsSync(CHROMIUM)) return `no ${CHROMIUM}`;
  try {
    await import("playwright-core");
  } catch {
    return "playwright-core is not installed";
  }
  return false;
}

/** Why the tests on real processes cannot run here, or false; `more` are programs that a test needs besides the usual. */
export function programsMissing(...more) {
  const folder = process.env.GPUTAP_BIN;
  if (!folder) return "GPUTAP_BIN is not set";
  for (const name of ["gputapd", "gputap-bridge", ...more]) if (!existsSync(join(folder, name))) return `no ${name} in GPUTAP_BIN`;
  return false;
}

export async function launchBrowser() {
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
}

/** Waits until a check gives something true, and returns that. */
export async function until(what, check, timeoutMs = 10000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function freePort() {
  const socket = createSocket();
  await new Promise((done) => socket.listen(0, "127.0.0.1", done));
  const { port } = socket.address();
  await new Promise((done) => socket.close(done));
  return port;
}

/** A broker and a bridge on a folder of their own. */
export class Gputap {
  constructor(simulate) {
    this.simulate = simulate;
    this.folder = mkdtempSync(join(tmpdir(), "gputap-browser-"));
    this.broker = null;
    this.bridge = null;
  }

  async start() {
    this.startBroker();
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}/`;
    await this.startBridge();
  }

  startBroker() {
    this.broker = this.#spawn("gputapd", ["--instance", "t", "--period", "100", ...this.simulate]);
  }

  async startBridge() {
    this.bridge = this.#spawn("gputap-bridge", ["--instance", "t", "--listen", `127.0.0.1:${this.port}`]);
    await until("the bridge is live", async () => {
      if (this.bridge.exitCode !== null) throw new Error(`the bridge ended: ${this.bridge.output}`);
      try {
        return (await fetch(`${this.url}healthz`)).ok;
      } catch {
        return false;
      }
    });
  }

  #spawn(name, args) {
    const child = spawn(join(process.env.GPUTAP_BIN, name), args, { env: { ...process.env, GPUTAP_DIR: this.folder }, stdio: ["ignore", "pipe", "pipe"] });
    child.output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => { child.output += data; });
    child.ended = new Promise((done) => child.once("exit", done));
    return child;
  }

  async kill(child) {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await child.ended;
  }

  async stop() {
    await this.kill(this.bridge);
    await this.kill(this.broker);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A process with a session at the broker, that does what tests/helpers/annotate_tool.c describes. */
export class Annotator {
  #answers = [];

  constructor({ folder }) {
    this.child = spawn(join(process.env.GPUTAP_BIN, "tests/annotate_tool"), { env: { ...process.env, GPUTAP_DIR: folder, GPUTAP_INSTANCE: "t" }, stdio: ["pipe", "pipe", "inherit"] });
    this.ended = new Promise((done) => this.child.once("exit", done));
    this.child.stdout.on("data", (data) => { this.#answers.push(...String(data).split("\n").filter(Boolean)); });
  }

  /** Obeys one line; throws where the library refuses it. */
  async say(line) {
    this.child.stdin.write(`${line}\n`);
    const answer = await until(`an answer to ${line}`, () => this.#answers.shift());
    if (answer.startsWith("-")) throw new Error(`${line}: ${answer}`);
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

/** The page's files with the bridge's security policy, for tests that play the bridge themselves. */
export async function servePage() {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://page").pathname;
    const file = normalize(join(WEB, path === "/" ? "index.html" : path));
    if (!file.startsWith(WEB) || !existsSync(file)) {
      response.writeHead(path.startsWith("/api/") ? 401 : 404).end();
      return;
    }
    response.writeHead(200, { "content-type": TYPES[extname(file)], "content-security-policy": "default-src 'self'; connect-src 'self' ws: wss:" });
    response.end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => { server.closeAllConnections(); server.close(); } };
}
