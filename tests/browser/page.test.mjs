// The dashboard in a real browser, with the test in the place of the bridge: for what a healthy bridge never says.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { browserMissing, launchBrowser, servePage, until } from "./processes.mjs";

const skip = await browserMissing();
const EVIL = '"><img src=x onerror="globalThis.injected=1"><script>globalThis.injected=1</script>';
const FIELDS = ["gfx_busy", "vram_used", "vram_total", "power_now"];

function hello(devices, more = {}) {
  return { type: "hello", v: 1, host: "h", epoch: "e", t: Date.now(), state: "live", simulated: false, set: "full", period: 500, fields: FIELDS,
    host_fields: ["cpu_busy"], sets: {}, units: { gfx_busy: "%", vram_used: "B", vram_total: "B", power_now: "W", cpu_busy: "%" }, decimals: {}, help: {}, system: {}, devices, limits: {}, ...more };
}

function device(index, more = {}) {
  return { index, id: `0000:0${index}:00.0`, name: `Card ${index}`, vendor: "amd", driver: "amdgpu", arch: "gfx1100", pool: "discrete", state: "ok", simulated: false, limits: {}, ...more };
}

function snap(devices, more = {}) {
  const metrics = { gfx_busy: 42, vram_used: 2 ** 30, vram_total: 2 ** 34, power_now: null };
  return { type: "snap", epoch: "e", state: "live", age_ms: 0, t: Date.now(),
    gpus: devices.map(({ index, state }) => ({ index, state, metrics, unknown: { power_now: "no permission" } })),
    system: { metrics: { cpu_busy: 3 }, unknown: {} }, ...more };
}

describe("against a bridge played by the test", { skip }, () => {
  let server, browser;
  before(async () => {
    server = await servePage();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    server?.stop();
  });

  async function openWith(messages, options = {}) {
    const context = await browser.newContext({ locale: "en-US", ...options });
    const page = await context.newPage();
    page.errors = [];
    page.on("pageerror", (error) => page.errors.push(error.message));
    await page.routeWebSocket(/\/ws$/, (socket) => {
      page.socket = socket;
      for (const message of messages) socket.send(JSON.stringify(message));
    });
    await page.goto(server.url);
    return page;
  }

  test("hostile names stay text", async () => {
    const evil = device(0, { name: EVIL, arch: EVIL, driver: EVIL, id: EVIL, vendor: EVIL, vram_type: EVIL, driver_version: EVIL });
    const page = await openWith([hello([evil], { host: EVIL, help: { gfx_busy: EVIL }, system: { cpu_name: EVIL, os: EVIL } }),
      snap([evil], { gpus: [{ index: 0, metrics: { gfx_busy: null, [EVIL]: null }, unknown: { gfx_busy: EVIL, [EVIL]: EVIL }, sources: { gfx_busy: EVIL } }] })]);
    await page.getByTestId("capsule-gpu").focus();
    await page.getByTestId("panel").getByText(EVIL).first().waitFor();
    await page.getByTestId("capsule-cpu").focus();
    assert.equal(await page.getByTestId("card-gpu").locator("h2").textContent(), EVIL);
    assert.equal(await page.evaluate(() => globalThis.injected), undefined);
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    assert.deepEqual(page.errors, []);
  });

  test("garbage between the messages does no harm", async () => {
    const page = await openWith([{ type: "s", t: 1, g: "x" }, 7, null, { type: "hello" }, { type: "history", gpu: 9, t: [], rows: [] }, hello([device(0)]), snap([device(0)]), { type: "later", x: 1 }]);
    await page.getByTestId("capsule-gpu").waitFor();
    page.socket.send("{not json");
    page.socket.send(JSON.stringify({ type: "s", seq: 1, t: Date.now(), g: [[77, 1, 2, 3]], c: [1] }));
    await until("the sample", async () => (await page.getByTestId("capsule-gpu").textContent()).includes("77 %"));
    assert.deepEqual(page.errors, []);
  });

  test("sixteen GPUs fit on a phone and on a wide screen", async () => {
    const devices = Array.from({ length: 16 }, (_, i) => device(i));
    for (const viewport of [{ width: 360, height: 740 }, { width: 1600, height: 900 }]) {
      const page = await openWith([hello(devices), snap(devices)], { viewport });
      await page.locator('[data-testid="capsule-gpu"][data-gpu="15"]').waitFor();
      assert.equal(await page.getByTestId("card-gpu").count(), 16);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false);
      await page.context().close();
    }
  });

  test("a device asleep, hung or gone says so", async () => {
    const devices = ["asleep", "hung", "gone", "settling"].map((state, i) => device(i, { state }));
    const page = await openWith([hello(devices), snap(devices)]);
    for (const [i, { state }] of devices.entries()) await page.getByTestId(`state-${i}`).and(page.getByText(state, { exact: true })).waitFor();
  });

  test("a machine without a GPU is told how to simulate one", async () => {
    const page = await openWith([hello([]), snap([])]);
    await page.getByTestId("no-gpu").waitFor();
    assert.match(await page.getByTestId("no-gpu").textContent(), /--simulate strix-halo/);
    assert.match(await page.getByTestId("capsule-cpu").textContent(), /3\.0 %/);
  });

  test("without a broker the page says how to start one", async () => {
    const page = await openWith([hello([], { epoch: null, state: "absent" }), snap([], { epoch: null, state: "absent", system: { metrics: {}, unknown: {} } })]);
    await page.locator('[data-testid="banner-feed"][data-state="absent"]').waitFor();
    assert.match(await page.getByTestId("banner-feed").textContent(), /gputapd/);
    assert.equal(await page.getByTestId("no-gpu").count(), 0);
  });

  test("a goodbye's own delay wins over the back-off", async () => {
    const page = await openWith([hello([device(0)]), snap([device(0)])]);
    await page.getByTestId("capsule-gpu").waitFor();
    page.socket.send(JSON.stringify({ type: "bye", code: "shutdown", retry_ms: 9000 }));
    await page.socket.close({ code: 1001 });
    await page.locator('[data-testid="banner-feed"][data-state="unreachable"]').waitFor();
    assert.match(await page.getByTestId("banner-feed").textContent(), /Reconnecting in [89] s/);
    await page.getByRole("button", { name: "Try now" }).click();
    await page.locator('[data-testid="banner-feed"][data-state="live"]').waitFor({ state: "attached" });
  });

  test("a bridge with a token gets it in the list of protocols, from the form", async () => {
    const page = await (await browser.newContext({ locale: "en-US" })).newPage();
    await page.addInitScript(() => {
      globalThis.offered = [];
      const Real = WebSocket;
      globalThis.WebSocket = class extends Real {
        constructor(address, protocols) {
          super(address, protocols);
          globalThis.offered.push(protocols);
        }
      };
    });
    // The page's server answers 401 under /api and refuses the upgrade, as a bridge with a token does.
    await page.goto(server.url);
    await page.getByTestId("token-form").waitFor();
    await page.getByLabel("Token").fill("secret");
    await page.getByRole("button", { name: "Connect" }).click();
    await until("the second attempt", () => page.evaluate(() => globalThis.offered.length >= 2));
    assert.deepEqual(await page.evaluate(() => globalThis.offered.at(-1)), ["gputap.v1", "token.secret"]);
    assert.equal(page.url(), server.url);
    await page.getByText("did not accept").waitFor();
  });
});
