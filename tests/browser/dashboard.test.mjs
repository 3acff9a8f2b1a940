// The dashboard in a real browser on a real bridge and broker.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { Gputap, browserMissing, launchBrowser, programsMissing, until } from "./processes.mjs";

const skip = (await browserMissing()) || programsMissing();
const SIMULATED = ["--simulate", "strix-halo", "--sim-load", "wave"];

const capsule = (page, kind, gpu = null) => page.locator(`[data-testid="capsule-${kind}"]${gpu === null ? "" : `[data-gpu="${gpu}"]`}`);
const points = async (page) => Number(await page.getByTestId("history-0").getAttribute("data-points"));
const scrollsSideways = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

async function changes(page, locator, timeoutMs = 10000) {
  const first = await locator.textContent();
  await until("a value changes", async () => (await locator.textContent()) !== first, timeoutMs);
}

async function open(browser, url, options = {}) {
  const context = await browser.newContext({ locale: "en-US", ...options });
  const page = await context.newPage();
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(error.message));
  page.heard = { sent: [], received: [] };
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => page.heard.sent.push(JSON.parse(payload).type));
    socket.on("framereceived", ({ payload }) => page.heard.received.push(JSON.parse(payload).type));
  });
  await page.goto(url);
  return page;
}

describe("on a simulated Strix Halo", { skip }, () => {
  let gputap, browser, page;
  before(async () => {
    gputap = new Gputap(SIMULATED);
    await gputap.start();
    browser = await launchBrowser();
  });
  afterEach(async () => {
    assert.deepEqual(page?.errors ?? [], []);
    await page?.context().close();
    page = null;
  });
  after(async () => {
    await browser?.close();
    await gputap?.stop();
  });

  test("the capsules appear with their units, and move", async () => {
    page = await open(browser, gputap.url);
    await until("the GPU has a load", async () => /^\s*GPU\s+\d+ % @ \d+ MHz \| \d+ °C/.test(await capsule(page, "gpu", 0).textContent()));
    assert.match(await capsule(page, "vram", 0).textContent(), /VRAM\s+\d+\.\d \/ \d+\.\d GB/);
    assert.match(await capsule(page, "power", 0).textContent(), /PWR\s+\d+ W/);
    assert.match(await capsule(page, "ram").textContent(), /RAM\s+\d+\.\d %/);
    await until("the CPU has a load", async () => /CPU\s+\d+\.\d %/.test(await capsule(page, "cpu").textContent()));
    await changes(page, capsule(page, "gpu", 0));
    assert.equal(await page.getByTestId("banner-feed").isVisible(), false);
  });

  test("the processes on the GPU are listed, and their load moves", async () => {
    page = await open(browser, gputap.url);
    const rows = page.getByTestId("process");
    await rows.filter({ hasText: "sim-workflow" }).waitFor();
    assert.equal(await rows.count(), 2);
    await changes(page, rows.first().locator('td[data-column="gfx_busy"]'), 20000);
  });

  test("a capsule keeps its width while its number changes", async () => {
    page = await open(browser, gputap.url);
    await until("numbers", async () => /\d/.test(await capsule(page, "gpu", 0).textContent()));
    const width = async () => (await capsule(page, "gpu", 0).boundingBox()).width;
    const first = await width();
    for (let i = 0; i < 3; i++) {
      await changes(page, capsule(page, "gpu", 0));
      assert.equal(await width(), first);
    }
  });

  test("what is simulated is called simulated", async () => {
    page = await open(browser, gputap.url);
    await page.getByTestId("banner-simulated").waitFor({ state: "visible" });
    assert.match(await page.getByTestId("card-gpu").first().textContent(), /simulated/);
  });

  test("a reload keeps the history", async () => {
    page = await open(browser, gputap.url);
    await until("some history", async () => (await points(page)) >= 4, 20000);
    const earlier = await points(page);
    await page.reload();
    await page.getByTestId("history-0").waitFor();
    await until("the history is back", async () => (await points(page)) >= earlier, 2000);
  });

  test("the panel opens by keyboard and by pointer, and Esc closes it", async () => {
    page = await open(browser, gputap.url);
    const panel = page.getByTestId("panel");
    await capsule(page, "vram", 0).waitFor();
    await capsule(page, "vram", 0).focus();
    await panel.waitFor({ state: "visible" });
    assert.equal(await capsule(page, "vram", 0).getAttribute("aria-expanded"), "true");
    assert.match(await panel.locator('[data-metric="unified_total"]').textContent(), /GB/);
    assert.match(await panel.locator('[data-metric="vram_total"]').textContent(), /[MG]B/);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "hidden" });
    await page.keyboard.press("ArrowRight");
    await panel.waitFor({ state: "visible" });
    assert.equal(await panel.getAttribute("data-kind"), "power");
    await capsule(page, "cpu").hover();
    await until("the pointer's panel", async () => (await panel.getAttribute("data-kind")) === "cpu");
  });

  test("the panel tells what the table of cards knows of the GPU", async () => {
    page = await open(browser, gputap.url);
    const panel = page.getByTestId("panel");
    await capsule(page, "vram", 0).focus();
    await until("its memory bandwidth", async () => /Memory bandwidth \(specified\)\s*256 GB\/s/.test(await panel.textContent()));
    await page.keyboard.press("Escape");
    await capsule(page, "gpu", 0).focus();
    await until("its arithmetic", async () => /FP16 \(specified peak\)\s*59\.4 TFLOPS/.test(await panel.textContent()));
  });

  test("the graph can be read with the keyboard", async () => {
    page = await open(browser, gputap.url);
    await until("some history", async () => (await points(page)) >= 2, 20000);
    const plot = page.getByTestId("history-0").getByRole("img");
    assert.match(await plot.getAttribute("aria-label"), /Load: now \d+ %/);
    await plot.focus();
    await page.keyboard.press("ArrowLeft");
    await page.getByTestId("history-0").locator(".readout").waitFor({ state: "visible" });
  });

  test("a hidden tab is paused after five seconds, and resumed", async () => {
    page = await open(browser, gputap.url);
    await until("samples", () => page.heard.received.includes("s"));
    const setHidden = (hidden) => page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
    await setHidden(true);
    await until("the pause", () => page.heard.sent.includes("pause"), 8000);
    await new Promise((done) => setTimeout(done, 600));
    const received = page.heard.received.length;
    await new Promise((done) => setTimeout(done, 1500));
    assert.equal(page.heard.received.length, received);
    await setHidden(false);
    await until("the resume", () => page.heard.sent.includes("resume"));
    await until("samples again", () => page.heard.received.slice(received).includes("s"));
  });

  test("a phone shows everything without scrolling sideways", async () => {
    page = await open(browser, gputap.url, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await until("numbers", async () => /\d/.test(await capsule(page, "gpu", 0).textContent()));
    assert.equal(await scrollsSideways(page), false);
    await capsule(page, "power", 0).tap();
    const panel = page.getByTestId("panel");
    await panel.waitFor({ state: "visible" });
    const box = await panel.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 360);
    assert.equal(await scrollsSideways(page), false);
    await capsule(page, "power", 0).tap();
    await panel.waitFor({ state: "hidden" });
  });

  test("theme, language and window are remembered", async () => {
    page = await open(browser, gputap.url);
    await page.getByTestId("theme").click();
    await page.getByTestId("language").selectOption("zh");
    await until("Chinese", async () => (await capsule(page, "ram").textContent()).includes("内存"));
    await page.getByTestId("window-60").check({ force: true });
    await page.reload();
    await until("Chinese again", async () => (await capsule(page, "ram").textContent()).includes("内存"));
    assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
    assert.equal(await page.getByTestId("window-60").isChecked(), true);
  });

  test("a killed broker is told, and a new one is followed without a reload", async () => {
    page = await open(browser, gputap.url);
    const banner = page.getByTestId("banner-feed");
    await until("numbers", async () => /\d/.test(await capsule(page, "gpu", 0).textContent()));
    await page.evaluate(() => { globalThis.sameDocument = true; });
    await gputap.kill(gputap.broker);
    await banner.waitFor({ state: "visible", timeout: 10000 });
    assert.equal(await banner.getAttribute("data-state"), "dead");
    assert.match(await banner.textContent(), /gputapd/);
    assert.match(await capsule(page, "gpu", 0).textContent(), /\d/);
    gputap.startBroker();
    await banner.waitFor({ state: "hidden", timeout: 15000 });
    await changes(page, capsule(page, "gpu", 0));
    assert.equal(await page.evaluate(() => globalThis.sameDocument), true);
  });

  test("a lost bridge is told, and found again", async () => {
    page = await open(browser, gputap.url);
    const banner = page.getByTestId("banner-feed");
    await until("numbers", async () => /\d/.test(await capsule(page, "gpu", 0).textContent()));
    await gputap.kill(gputap.bridge);
    await until("unreachable", async () => (await banner.getAttribute("data-state")) === "unreachable");
    await gputap.startBridge();
    await until("live", async () => (await banner.getAttribute("data-state")) === "live", 20000);
    await changes(page, capsule(page, "gpu", 0));
  });
});

describe("on a device that knows nothing", { skip }, () => {
  let gputap, browser;
  before(async () => {
    gputap = new Gputap(["--simulate", "broken"]);
    await gputap.start();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await gputap?.stop();
  });

  test("an unknown number is a dash, and the panel says why", async () => {
    const page = await open(browser, gputap.url);
    await capsule(page, "gpu", 0).waitFor();
    await until("a capsule without a reading", async () => (await page.locator('.capsule[data-gpu="0"][data-state="unknown"]').count()) > 0);
    const unknown = page.locator('.capsule[data-gpu="0"][data-state="unknown"]').first();
    assert.match(await unknown.textContent(), /–/);
    await unknown.focus();
    const row = page.getByTestId("panel").locator('dd[data-state="unknown"]').first();
    await row.waitFor({ state: "visible" });
    assert.match(await row.textContent(), /^– [\p{Letter} ]{3}/u);
    assert.deepEqual(page.errors, []);
  });
});
