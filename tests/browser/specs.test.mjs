import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { specsOf } from "../../web/specs.js";

const { cards } = JSON.parse(readFileSync(new URL("../../data/gpu_specs.json", import.meta.url)));
const nameOf = (device) => specsOf(device, cards)?.name ?? null;
const amd = (device_id, name, revision = null) => ({ vendor: "amd", device_id, name, revision });

test("a card is found by id, revision, and name, as the broker finds it", () => {
  assert.equal(nameOf({ vendor: "nvidia", device_id: 0x2684, name: "" }), "NVIDIA GeForce RTX 4090");
  assert.equal(nameOf(amd(0x1586, "AMD GPU 1002:1586", 0xc2)), "AMD Radeon 8050S Graphics");
  assert.equal(nameOf(amd(0x744c, "AMD Radeon RX 7900 XTX", 0xcc)), "AMD Radeon RX 7900 XT");
  assert.equal(nameOf(amd(0x744c, "AMD Radeon RX 7900 XTX")), "AMD Radeon RX 7900 XTX");
  assert.equal(specsOf(amd(0x1586, "AMD Radeon 8060S Graphics"), cards).specs.bw_gbs, 256);
});

test("where it is not sure which card it is, there are no specifications", () => {
  for (const device of [amd(0x744c, "AMD Radeon RX 7900 XT/7900 XTX/7900M", 0xee), amd(0x744c, "AMD GPU 1002:744c"), amd(0x73ff, "RX 6600T"),
    amd(0x2684, "NVIDIA GeForce RTX 4090"), amd(0x6818, "AMD Radeon HD 7870"), amd(null, "x"), {}, null])
    assert.equal(nameOf(device), null);
  assert.equal(specsOf(amd(0x744c, "AMD Radeon RX 7900 XTX"), null), null);
});
