// The strip of what runs and the table of what has ended, with the test in the place of the bridge.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { browserMissing, launchBrowser, servePage, until } from "./processes.mjs";

const skip = await browserMissing();
const EVIL = '"><img src=x onerror="globalThis.injected=1">';
const DEVICE = { index: 0, id: "0000:01:00.0", name: "Card", vendor: "amd", driver: "amdgpu", arch: "gfx1151", pool: "unified", state: "ok", simulated: false, limits: {} };
const hello = (more = {}) => ({ type: "hello", v: 1, host: "h", epoch: "e", t: Date.now(), state: "live", simulated: false, set: "full", period: 500,
  fields: ["gfx_busy"], host_fields: ["cpu_busy"], sets: {}, units: { gfx_busy: "%", cpu_busy: "%" }, decimals: {}, help: {}, system: {}, devices: [DEVICE], limits: {}, ...more });
const snap = (more = {}) => ({ type: "snap", epoch: "e", state: "live", age_ms: 0, t: Date.now(), gpus: [{ index: 0, state: "ok", metrics: { gfx_busy: 1 }, unknown: {} }],
  system: { metrics: { cpu_busy: 1 }, unknown: {} }, ...more });
const span = (id, more = {}) => ({ id, parent: 0, job: "p1", node: "3", name: `node ${id}`, start: Date.now() - 5000, seconds: 5, value: null, max: null, gpus: null, shared: false, ...more });
const session = (more = {}) => ({ slot: 0, generation: 1, pid: 42, uid: 1000, comm: "python3", label: "ComfyUI", since: Date.now() - 9000, gauges: [], spans: [], ...more });
const sessions = (list, more = {}) => ({ type: "sessions", t: Date.now(), epoch: "e", sessions: list, hidden: 0, ...more });
const end = (id, more = {}) => ({ type: "end", t: Date.now(), session: "0.1", span: id, parent: 0, job: "p1", node: "3", name: `node ${id}`, label: "ComfyUI", seconds: id, ...more });
const usage = (id, more = {}) => ({ type: "usage", t: Date.now(), session: "0.1", span: id, name: `node ${id}`, label: "ComfyUI",
  usage: { gpu: 0, seconds: id, energy: 100 * id, net_energy: null, busy_mean: 50, vram_peak: 1, unified_peak: 2 ** 30 * id, temperature_peak: 60, ...more } });
const events = (...list) => ({ type: "event", epoch: "e", events: list });

describe("what sessions say", { skip }, () => {
  let server, browser;
  before(async () => {
    server = await servePage();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    server?.stop();
  });

  async function open(messages, options = {}) {
    const context = await browser.newContext({ locale: "en-US", ...options });
    const page = await context.newPage();
    page.errors = [];
    page.on("pageerror", (error) => page.errors.push(error.message));
    await page.routeWebSocket(/\/ws$/, (socket) => {
      page.socket = socket;
      for (const message of [hello(), snap(), ...messages]) socket.send(JSON.stringify(message));
    });
    await page.goto(server.url);
    page.tell = (message) => page.socket.send(JSON.stringify(message));
    return page;
  }
  const rows = (page) => page.getByTestId("finished-row");
  const column = (page, key) => page.locator(`td[data-column="${key}"]`).allTextContents();

  test("a session's open spans are a tree with progress that can be heard", async () => {
    const page = await open([sessions([session({ gauges: [{ gpu: 0, allocated: 2 ** 30, reserved: null, dynamic: null }],
      spans: [span(1), span(2, { parent: 1, value: 12, max: 30, gpus: [0], shared: true })] })])]);
    const bar = page.getByRole("progressbar", { name: "Progress of node 2" });
    await bar.waitFor();
    assert.deepEqual([await bar.getAttribute("aria-valuenow"), await bar.getAttribute("aria-valuemax"), await bar.getAttribute("aria-valuetext")], ["12", "30", "12 / 30, 40 %"]);
    assert.equal(await page.getByRole("progressbar").count(), 1, "a span of unknown length has no bar");
    const [outer, inner] = [page.getByTestId("span").nth(0), page.getByTestId("span").nth(1)];
    const left = async (locator) => (await locator.locator(".span-name").boundingBox()).x;
    assert.ok(await left(inner) > await left(outer) + 8);
    assert.match(await inner.textContent(), /node 2 node 3 · job p1.*12 \/ 30 5\.\d s GPU 0 · shared/);
    assert.match(await page.getByTestId("session").textContent(), /ComfyUI python3 pid 42 GPU 0: 1\.0 GB allocated/);
    assert.deepEqual(page.errors, []);
  });

  test("seconds run without messages, and stand still when the broker is gone", async () => {
    const page = await open([sessions([session({ spans: [span(1)] })])]);
    const seconds = page.locator(".span-seconds");
    const first = await seconds.textContent();
    await until("it runs", async () => (await seconds.textContent()) !== first, 4000);
    page.tell({ type: "state", t: Date.now(), state: "dead", age_ms: 100 });
    await page.locator('#running[data-dim]').waitFor();
    const last = await seconds.textContent();
    await new Promise((done) => setTimeout(done, 2200));
    assert.equal(await seconds.textContent(), last);
  });

  test("a session vanishes when it ends, one without spans is shown small, others' are counted", async () => {
    const page = await open([sessions([session({ spans: [span(1)] }), session({ slot: 1, label: "idle one" })], { hidden: 3 })]);
    await page.getByText("3 sessions of other users").waitFor();
    assert.equal(await page.locator(".idle-sessions").getByText("idle one").count(), 1);
    page.tell(sessions([]));
    await until("nothing runs", async () => !(await page.getByTestId("running").isVisible()), 1000);
    assert.equal(await page.getByTestId("session").count(), 0);
  });

  test("nothing is written where nothing changed", async () => {
    const list = [session({ spans: [span(1, { start: null, seconds: 7 })] })];
    const page = await open([sessions(list), events(end(1), usage(1))]);
    await rows(page).first().waitFor();
    await page.evaluate(() => {
      globalThis.writes = 0;
      const observer = new MutationObserver((records) => { globalThis.writes += records.length; });
      for (const id of ["running", "finished"]) observer.observe(document.getElementById(id), { subtree: true, childList: true, attributes: true, characterData: true });
    });
    for (let i = 0; i < 3; i++) {
      page.tell(sessions(list));
      page.tell({ type: "s", seq: i, t: Date.now(), g: [[i]], c: [i] });
      await new Promise((done) => setTimeout(done, 150));
    }
    assert.equal(await page.evaluate(() => globalThis.writes), 0);
  });

  test("hostile names stay text, in the strip and in the table", async () => {
    const evil = { name: EVIL, node: EVIL, job: EVIL, label: EVIL };
    const page = await open([sessions([session({ label: EVIL, comm: EVIL, spans: [span(1, { ...evil, value: 1, max: 2 })] }), session({ slot: 1, label: EVIL })]), events(end(1, evil), usage(1))]);
    await rows(page).first().waitFor();
    assert.equal((await page.locator('td[data-column="node"]').textContent()), EVIL);
    assert.equal(await page.evaluate(() => globalThis.injected), undefined);
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    assert.deepEqual(page.errors, []);
  });

  test("the table sorts by the buttons of its head and says so", async () => {
    const page = await open([events(end(2), usage(2), end(10), usage(10, { energy: null }), end(5), usage(5))]);
    await rows(page).nth(2).waitFor();
    const head = page.locator('th[data-column="energy"]');
    await head.getByRole("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    assert.deepEqual(await column(page, "energy"), ["500 J", "200 J", "–"]);
    await page.keyboard.press("Enter");
    assert.equal(await head.getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await column(page, "energy"), ["200 J", "500 J", "–"]);
    assert.equal(await page.locator("th[aria-sort]").count(), 1);
    page.tell(events(end(1), usage(1)));
    await until("the new row in its place", async () => (await column(page, "energy"))[0] === "100 J");
    assert.deepEqual(await column(page, "net_energy"), ["–", "–", "–", "–"]);
    assert.deepEqual((await column(page, "vram_peak"))[0], "1.0 GB");
  });

  test("notes are words with an explanation", async () => {
    const page = await open([events(end(1, { abandoned: true }), usage(1, { partial: true, estimated: true, shared: true }))]);
    const cell = page.locator('td[data-column="flags"]');
    await cell.waitFor();
    assert.equal(await cell.textContent(), "abandoned, partial, estimated, shared");
    assert.equal((await cell.getAttribute("title")).split("\n").length, 4);
  });

  test("the table is copied as CSV and as Markdown", async () => {
    const page = await open([events(end(1), usage(1), end(2), usage(2))], { permissions: ["clipboard-read", "clipboard-write"] });
    await rows(page).nth(1).waitFor();
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await page.getByRole("button", { name: "Copy as CSV" }).click();
    await page.getByText("Copied 2 rows.").waitFor();
    assert.match(await copied(), /^ended,name.*\r\n.*,node 2,3,p1,ComfyUI,0,2,200,,50,2147483648,60,\r\n/);
    await page.getByRole("button", { name: "Copy as Markdown" }).click();
    await until("Markdown", async () => /^\| Ended \| Name .*\n\| ---: \| --- /.test(await copied()));
  });

  test("the rows survive a reconnect, and are not doubled", async () => {
    const page = await open([events(end(1), usage(1))]);
    await rows(page).first().waitFor();
    const socket = page.socket;
    await socket.close({ code: 1001 });
    await until("another connection", () => page.socket !== socket, 8000);
    page.tell(events(end(2), usage(2)));
    await rows(page).nth(1).waitFor();
    assert.equal(await rows(page).count(), 2);
  });

  test("what ended before is fetched on connecting, and again when events were lost", async () => {
    const context = await browser.newContext({ locale: "en-US" });
    const page = await context.newPage();
    let asked = 0;
    await page.route("**/api/v1/sessions", (route) => {
      asked++;
      const finished = Array.from({ length: asked }, (_, i) => ({ ...end(i + 1), epoch: "e", usage: [usage(i + 1).usage] }));
      return route.fulfill({ json: { v: 1, t: Date.now(), epoch: "e", sessions: [], hidden: 0, finished } });
    });
    let socket;
    await page.routeWebSocket(/\/ws$/, (opened) => {
      socket = opened;
      for (const message of [hello(), snap()]) opened.send(JSON.stringify(message));
    });
    await page.goto(server.url);
    await rows(page).first().waitFor();
    socket.send(JSON.stringify({ type: "gap", events: 5, why: "slow" }));
    await rows(page).nth(1).waitFor();
    assert.equal(await rows(page).count(), 2);
  });

  test("two hundred spans and deep trees fit on a phone", async () => {
    const chain = Array.from({ length: 32 }, (_, i) => span(i + 1, { parent: i, name: "n".repeat(63), job: "j".repeat(47) }));
    const list = Array.from({ length: 200 }, (_, i) => [end(i + 1, { name: "n".repeat(63) }), usage(i + 1)]).flat();
    const page = await open([sessions([session({ label: "l".repeat(47), spans: chain })]), events(...list)], { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
    await rows(page).nth(199).waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false);
    assert.equal(await page.getByTestId("span").count(), 32);
  });

  test("another language keeps order and rows", async () => {
    const page = await open([sessions([session({ spans: [span(1, { value: 1, max: 4 })] })]), events(end(1), usage(1), end(2), usage(2))]);
    await page.locator('th[data-column="seconds"]').getByRole("button").click();
    await page.getByTestId("language").selectOption("zh");
    await page.getByRole("heading", { name: "正在运行" }).waitFor();
    assert.equal(await page.locator('th[data-column="seconds"]').getAttribute("aria-sort"), "descending");
    assert.equal(await rows(page).count(), 2);
  });
});
