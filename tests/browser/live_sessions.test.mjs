// Sessions in a real browser, from a real annotating process by a real broker and bridge.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Annotator, Gputap, browserMissing, launchBrowser, programsMissing, until } from "./processes.mjs";

const skip = (await browserMissing()) || programsMissing("tests/annotate_tool");

describe("an annotating process", { skip }, () => {
  let gputap, browser, tool, page;
  before(async () => {
    gputap = new Gputap(["--simulate", "strix-halo", "--sim-load", "wave"]);
    await gputap.start();
    browser = await launchBrowser();
    page = await (await browser.newContext({ locale: "en-US" })).newPage();
    page.errors = [];
    page.on("pageerror", (error) => page.errors.push(error.message));
    await page.goto(gputap.url);
    tool = new Annotator(gputap);
    await tool.say("attach ComfyUI");
  });
  after(async () => {
    await tool?.kill();
    await browser?.close();
    await gputap?.stop();
  });
  const running = () => page.getByTestId("running");
  const rows = () => page.getByTestId("finished-row");
  const cell = (row, key) => row.locator(`td[data-column="${key}"]`).textContent();

  test("is seen while it works, step by step", async () => {
    await tool.say("begin outer p1 - prompt -");
    await tool.say("begin inner p1 3 KSampler outer 0");
    await running().getByText("KSampler").waitFor({ timeout: 2000 });
    for (const step of [1, 7]) {
      await tool.say(`step inner ${step} 20`);
      await running().getByText(`${step} / 20`).waitFor({ timeout: 2000 });
    }
    await tool.say(`gauge 0 ${2 ** 30} ${2 ** 31}`);
    await running().getByText("1.0 GB allocated, 2.0 GB reserved").waitFor({ timeout: 2000 });
  });

  test("leaves a row with what it took", async () => {
    await tool.say("end inner");
    const row = rows().filter({ hasText: "KSampler" });
    await until("its energy", async () => (await row.count()) === 1 && /^[\d.]+ k?J$/.test(await cell(row, "energy")), 3000);
    assert.equal(await cell(row, "node"), "3");
    assert.equal(await cell(row, "label"), "ComfyUI");
    assert.match(await cell(row, "vram_peak"), /^[\d.]+ [MG]B$/);
    assert.match(await cell(row, "temperature_peak"), /^\d+ °C$/);
    assert.match(await cell(row, "seconds"), /^\d+\.\d+ s$/);
  });

  test("vanishes within a second when it is killed, its span abandoned", async () => {
    await tool.kill();
    await until("the strip is gone", async () => !(await running().isVisible()), 1000);
    const row = rows().filter({ hasText: "prompt" });
    await until("the row says so", async () => (await row.count()) === 1 && (await cell(row, "flags")).includes("abandoned"), 3000);
  });

  test("is still in the table after a reload", async () => {
    await page.reload();
    await rows().filter({ hasText: "KSampler" }).waitFor();
    assert.equal(await rows().count(), 2);
    assert.deepEqual(page.errors, []);
  });
});
