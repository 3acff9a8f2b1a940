// What the page's files must never contain, and what the locale files must.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const web = new URL("../../web/", import.meta.url);
const text = (name) => readFileSync(new URL(name, web), "utf8");
const scripts = readdirSync(web).filter((name) => name.endsWith(".js"));
const english = JSON.parse(text("locale/en.json"));

test("nothing becomes markup or code from a string", () => {
  for (const name of scripts) {
    assert.doesNotMatch(text(name), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, name);
  }
});

test("the page needs nothing inline and nothing from elsewhere", () => {
  const page = text("index.html");
  assert.doesNotMatch(page, /\sstyle=|<style|\son\w+=|https?:/);
  assert.doesNotMatch(page, /<script(?![^>]*\ssrc=)/);
  for (const name of [...scripts, "style.css", "capsules.css", "tokens.css"]) {
    assert.doesNotMatch(text(name), /https?:\/\/|@import|url\(/, name);
  }
});

test("data moves without transitions and animations", () => {
  for (const name of ["style.css", "capsules.css"]) assert.doesNotMatch(text(name), /transition|animation/, name);
});

test("every language has the same texts with the same parameters", () => {
  const parameters = (value) => [...value.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const file of readdirSync(new URL("locale/", web))) {
    const words = JSON.parse(text(`locale/${file}`));
    assert.deepEqual(Object.keys(words).sort(), Object.keys(english).sort(), file);
    for (const [key, value] of Object.entries(words)) assert.deepEqual(parameters(value), parameters(english[key]), `${file} ${key}`);
  }
});

test("every fixed key that the scripts ask for has a text", () => {
  for (const name of scripts) {
    for (const [, key] of text(name).matchAll(/\bt\("([^"]+)"/g)) assert.ok(key in english, `${name}: ${key}`);
  }
});

test("every metric has a label", () => {
  const table = readFileSync(new URL("../../shm/metrics.def", import.meta.url), "utf8");
  for (const [, name] of table.matchAll(/^(?:GPU|HOST)_METRIC\(\w+, (\w+),/gm)) assert.ok(`metric.${name}` in english, name);
});
