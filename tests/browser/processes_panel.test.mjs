// The panel of processes, with the test in the place of the bridge.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { processNotes, processRows } from "../../web/processes.js";
import { browserMissing, launchBrowser, servePage, until } from "./processes.mjs";

const skip = await browserMissing();
const GIB = 2 ** 30;
const EVIL = '<img src=x onerror="globalThis.injected=1">';
const device = (index, name) => ({ index, id: `0000:0${index + 1}:00.0`, name, vendor: "amd", driver: "amdgpu", arch: "gfx1151", pool: "discrete", state: "ok", simulated: false, limits: {} });
const hello = (devices) => ({ type: "hello", v: 1, host: "h", epoch: "e", t: Date.now(), state: "live", simulated: false, set: "full", period: 500,
  fields: ["gfx_busy"], host_fields: ["cpu_busy"], sets: {}, units: { gfx_busy: "%", cpu_busy: "%" }, decimals: {}, help: {}, system: {}, devices, limits: {} });
const snap = (processes, more = {}) => ({ type: "snap", epoch: "e", state: "live", age_ms: 0, t: Date.now(), gpus: [], system: { metrics: { cpu_busy: 1 }, unknown: {} }, processes, ...more });
const row = (pid, vram, more = {}) => ({ pid, uid: 1000, comm: `p${pid}`, container: null, start: 1, vram, gtt: 2 ** 20, gfx_busy: 12.4, compute_busy: 0, copy_busy: 0,
  encode_busy: null, decode_busy: null, media_busy: null, sharers: 0, kfd: false, partial: false, ...more });
const gpu = (index, rows, more = {}) => ({ gpu: index, rows, others: { count: 0, vram: 0, gtt: 0 }, hidden: 0, hidden_vram: 0, partial: false, external: null, ...more });
const unlooked = (index) => ({ gpu: index, rows: null, others: null, hidden: null, hidden_vram: null, partial: null, external: null });

test("the largest come first, what is unknown last, and processes with a session have its label", () => {
  const rows = processRows([gpu(0, [row(1, null), row(2, 5), row(3, 7), null]), unlooked(1), gpu(2, [row(2, 1)])], new Map([[2, "ComfyUI"]]));
  assert.deepEqual(rows.map(({ gpu: number, pid, label }) => [number, pid, label]), [[0, 3, undefined], [0, 2, "ComfyUI"], [0, 1, undefined], [2, 2, "ComfyUI"]]);
});

test("no process, no scan and what is missing are told apart", () => {
  const keys = (gpus) => processNotes(gpus).map(({ key }) => key.replace("processes.", ""));
  assert.deepEqual(keys([gpu(0, [])]), ["none"]);
  assert.deepEqual(keys([unlooked(0), unlooked(1)]), ["notLookedAtAll"]);
  assert.deepEqual(keys([gpu(0, []), unlooked(1)]), ["none", "notLooked"]);
  assert.deepEqual(keys([gpu(0, [], { hidden: 2, hidden_vram: null })]), ["hidden"], "a GPU whose processes are hidden is not free");
  assert.deepEqual(keys([gpu(0, [row(1, 1)], { others: { count: 1, vram: 1, gtt: null }, hidden: 1, hidden_vram: 5, partial: true, external: 9 })]),
    ["others", "hidden", "hiddenVram", "partial", "external"]);
  assert.deepEqual(keys([]), []);
});

describe("the panel of processes", { skip }, () => {
  let server, browser;
  before(async () => {
    server = await servePage();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    server?.stop();
  });

  async function open(processes, { devices = [device(0, "Card")], context = null, ...more } = {}) {
    const page = await (context ?? await browser.newContext({ locale: "en-US" })).newPage();
    page.errors = [];
    page.subs = [];
    page.on("pageerror", (error) => page.errors.push(error.message));
    await page.routeWebSocket(/\/ws$/, (socket) => {
      page.socket = socket;
      socket.onMessage((text) => {
        const message = JSON.parse(text);
        if (message.type === "sub") page.subs.push(message.processes);
      });
      for (const message of [hello(devices), snap(processes, more)]) socket.send(JSON.stringify(message));
    });
    await page.goto(server.url);
    page.tell = (gpus) => page.socket.send(JSON.stringify({ type: "processes", t: Date.now(), gpus }));
    return page;
  }
  const rows = (page) => page.getByTestId("process");
  const cells = (page, key) => page.locator(`.processes td[data-column="${key}"]`).allTextContents();
  const texts = async (page, key) => (await cells(page, key)).map((text) => text.trim());

  test("shows who holds what, and why there is a dash", async () => {
    const page = await open([gpu(0, [row(7, 3 * GIB, { partial: true, container: "3f2a9c0011aa", sharers: 2 }), row(8, null, { gfx_busy: null })], { external: GIB })]);
    await rows(page).first().waitFor();
    assert.deepEqual(await texts(page, "vram"), ["≥ 3.0 GB", "–"]);
    assert.deepEqual(await texts(page, "name"), ["p7 +2", "p8"]);
    assert.deepEqual(await texts(page, "gfx_busy"), ["12 %", "–"]);
    assert.deepEqual(await texts(page, "compute_busy"), ["0 %", "0 %"], "a known zero is no dash");
    assert.match(await page.locator('.processes td[data-column="vram"]').nth(1).getAttribute("title"), /does not tell/);
    assert.match(await page.locator('.processes td[data-column="vram"]').nth(0).getAttribute("title"), /at least/);
    assert.equal(await page.locator('.processes th[data-column="gpu"]').isVisible(), false, "one GPU needs no number");
    assert.equal(await page.locator('.processes th[data-column="media_busy"]').isVisible(), false);
    assert.match(await page.getByTestId("processes").textContent(), /1\.0 GB of VRAM in use by no process that is known/);
    page.tell([gpu(0, [row(7, 3 * GIB, { media_busy: 5 })])]);
    await page.locator('.processes th[data-column="media_busy"]').waitFor({ state: "visible" });
    assert.equal(await rows(page).count(), 1);
    assert.deepEqual(page.errors, []);
  });

  test("a table has its name, can be reached by the keyboard, and the own session is seen in it", async () => {
    const session = { slot: 0, generation: 1, pid: 7, uid: 1000, comm: "python3", label: "ComfyUI", since: 1, gauges: [], spans: [] };
    const page = await open([gpu(0, [row(7, GIB), row(8, GIB / 2)])], { sessions: [session], hidden: 0 });
    await page.getByRole("table", { name: "Processes on the GPUs" }).waitFor();
    assert.equal(await page.locator(".processes .table-frame").getAttribute("tabindex"), "0");
    assert.deepEqual([await rows(page).nth(0).getAttribute("data-own"), await rows(page).nth(1).getAttribute("data-own")], ["", null]);
    assert.match(await rows(page).nth(0).textContent(), /ComfyUI/);
  });

  test("closed it asks for nothing, and stays closed over a reload", async () => {
    const context = await browser.newContext({ locale: "en-US" });
    const page = await open([gpu(0, [row(7, GIB)])], { context });
    await rows(page).first().waitFor();
    assert.deepEqual(page.subs, [true]);
    await page.locator(".processes summary").press("Enter");
    await until("it has said so", () => page.subs.length === 2);
    assert.deepEqual(page.subs, [true, false]);
    assert.equal(await rows(page).first().isVisible(), false);
    const again = await open([gpu(0, [row(7, GIB)])], { context });
    await again.locator(".processes summary").waitFor();
    await until("its wish", () => again.subs.length === 1);
    assert.deepEqual(again.subs, [false]);
    await again.locator(".processes summary").click();
    await rows(again).first().waitFor();
    assert.deepEqual(again.subs, [false, true]);
  });

  test("nothing is written where nothing changed", async () => {
    const list = [gpu(0, [row(7, GIB), row(8, null)], { hidden: 1, hidden_vram: 5 })];
    const page = await open(list);
    await rows(page).first().waitFor();
    await page.evaluate(() => {
      globalThis.writes = 0;
      new MutationObserver((records) => { globalThis.writes += records.length; })
        .observe(document.getElementById("processes"), { subtree: true, childList: true, attributes: true, characterData: true });
    });
    for (let i = 0; i < 3; i++) {
      page.tell(list);
      await new Promise((done) => setTimeout(done, 150));
    }
    assert.equal(await page.evaluate(() => globalThis.writes), 0);
    page.tell([gpu(0, [row(8, null)])]);
    await until("a row goes", async () => (await rows(page).count()) === 1);
    assert.ok(await page.evaluate(() => globalThis.writes) > 0, "the observer sees");
  });

  test("hostile names stay text, and garbage leaves the page standing", async () => {
    const page = await open([gpu(0, [row(7, GIB, { comm: EVIL, container: EVIL })])]);
    await rows(page).first().waitFor();
    assert.ok((await texts(page, "name"))[0].startsWith("<img"));
    for (const garbage of [null, 7, {}, [null, 7, { gpu: "x" }], [{ gpu: 0, rows: [null, 5, {}], others: 3, hidden: "x" }], [{ gpu: 0 }]]) page.tell(garbage);
    page.tell([gpu(0, [row(9, 1)])]);
    await page.getByText("p9").waitFor();
    assert.equal(await page.evaluate(() => globalThis.injected), undefined);
    assert.deepEqual(page.errors, []);
  });

  test("a bridge that knows no processes has no panel, nor has a machine without a GPU", async () => {
    const old = await open(undefined);
    await old.getByTestId("card-gpu").waitFor();
    assert.equal(await old.getByTestId("processes").isVisible(), false);
    const none = await open([], { devices: [] });
    await none.getByTestId("no-gpu").waitFor();
    assert.equal(await none.getByTestId("processes").isVisible(), false);
  });

  test("it fits a telephone", async () => {
    const context = await browser.newContext({ locale: "zh-CN", viewport: { width: 390, height: 844 } });
    const page = await open([gpu(0, [row(7, GIB, { container: "a".repeat(15), comm: "b".repeat(15) })], { hidden: 3, hidden_vram: GIB }), unlooked(1)],
      { context, devices: [device(0, "Card"), device(1, "Other")] });
    await rows(page).first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false);
    await page.getByText("GPU 上的进程").waitFor();
  });
});
