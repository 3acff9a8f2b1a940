import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DASH, runningTime } from "../../web/format.js";
import { COLUMNS, finishedRows, secondsText, sortRows, toCsv, toMarkdown } from "../../web/rows.js";
import { FINISHED_LIMIT, Sessions, progress, spanTree } from "../../web/sessions.js";
import { Store } from "../../web/store.js";

const T = 1764540000000;
const end = (span, more = {}) => ({ type: "end", t: T + span, session: "0.1", span, name: `n${span}`, node: "3", job: "p1", label: "L", seconds: 2, ...more });
const usage = (span, gpu, more = {}) => ({ type: "usage", t: T + span, session: "0.1", span, name: `n${span}`, label: "L",
  usage: { gpu, seconds: 2, energy: 100, net_energy: 40, busy_mean: 50, vram_peak: 2 ** 30, unified_peak: null, temperature_peak: 60, ...more } });
const events = (...list) => ({ type: "event", epoch: "e1", events: list });

test("an ended span is joined by what it took on each GPU", () => {
  const sessions = new Sessions();
  sessions.applyEvents(events(end(1), usage(1, 1), usage(1, 0, { energy: null })));
  const rows = finishedRows(sessions.finished);
  assert.deepEqual(rows.map((row) => [row.gpu, row.energy, row.node]), [[0, null, "3"], [1, 100, "3"]]);
});

test("usage without its end is a row all the same", () => {
  const sessions = new Sessions();
  sessions.applyEvents(events(usage(9, 0)));
  const [row] = finishedRows(sessions.finished);
  assert.deepEqual([row.name, row.seconds, row.ended], ["n9", 2, T + 9]);
});

test("a span whose usage is not known yet has a row of dashes and no zero", () => {
  const sessions = new Sessions();
  sessions.applyEvents(events(end(1, { abandoned: true, seconds: null })));
  const [row] = finishedRows(sessions.finished);
  const texts = Object.fromEntries(COLUMNS.map((column) => [column.key, column.text(row)]));
  for (const key of ["gpu", "seconds", "energy", "net_energy", "busy_mean", "vram_peak", "temperature_peak"]) assert.equal(texts[key], DASH, key);
  assert.equal(texts.flags, "abandoned");
});

test("the bridge's list after a reconnect adds nothing twice, and other broker starts are kept apart", () => {
  const sessions = new Sessions();
  sessions.applyEvents(events(end(1), usage(1, 0)));
  const { usage: one } = usage(1, 0);
  sessions.apply({ finished: [{ ...end(1), epoch: "e1", usage: [one] }, { ...end(1), epoch: "e2", usage: [] }, null, 7] });
  assert.equal(sessions.finished.length, 2);
  assert.equal(finishedRows(sessions.finished).length, 2);
});

test("the same span of another session is another span", () => {
  const sessions = new Sessions();
  sessions.applyEvents(events(end(1), end(1, { session: "0.2" }), end(1, { session: "5.1" })));
  assert.equal(sessions.finished.length, 3);
});

test("only the last spans are kept", () => {
  const sessions = new Sessions();
  for (let i = 1; i <= FINISHED_LIMIT + 5; i++) sessions.applyEvents(events(end(i)));
  assert.equal(sessions.finished.length, FINISHED_LIMIT);
  assert.equal(sessions.finished[0].name, "n6");
});

test("a snapshot without sessions leaves the list, and one with an empty list clears it", () => {
  const store = new Store(() => T);
  store.apply({ type: "sessions", t: T, sessions: [{ session: "0.1", spans: [] }], hidden: 2 });
  store.apply({ type: "snap", epoch: "e1", gpus: [] });
  assert.equal(store.sessions.running.length, 1);
  assert.equal(store.sessions.hidden, 2);
  store.apply({ type: "snap", epoch: "e1", gpus: [], sessions: [], hidden: 0 });
  assert.deepEqual(store.sessions.running, []);
});

test("garbage about sessions changes nothing", () => {
  const store = new Store(() => T);
  for (const message of [{ type: "sessions" }, { type: "sessions", sessions: 7 }, { type: "event" }, { type: "event", events: [null, 7, {}, { type: "later" }] }]) store.apply(message);
  assert.deepEqual(store.sessions.running, []);
  assert.deepEqual(store.sessions.finished, []);
});

test("lost events are counted, and apart from ticks", () => {
  const store = new Store(() => T);
  store.apply({ type: "gap", why: "slow", events: 7 });
  store.apply({ type: "gap", why: "paused", events: 9 });
  assert.deepEqual([store.sessions.missedEvents, store.missedTicks], [7, 0]);
});

test("on a unified pool the peak is that of the unified memory", () => {
  const sessions = new Sessions();
  sessions.applyEvents(events(usage(1, 0, { unified_peak: 5, vram_peak: 1 }), usage(2, 0, { unified_peak: null, vram_peak: 1 })));
  assert.deepEqual(finishedRows(sessions.finished).map((row) => [row.vram_peak, row.unified]), [[5, true], [1, false]]);
});

test("spans are a tree; a parent that is gone or a circle hides none", () => {
  const tree = (spans) => spanTree(spans).map(({ span, depth }) => [span.id, depth]);
  assert.deepEqual(tree([{ id: 1 }, { id: 2, parent: 3 }, { id: 3, parent: 1 }, { id: 4, parent: 77 }]), [[1, 0], [3, 1], [2, 2], [4, 0]]);
  assert.deepEqual(tree([{ id: 1, parent: 2 }, { id: 2, parent: 1 }, { id: 3, parent: 3 }]), [[3, 0], [1, 0], [2, 1]]);
  assert.deepEqual(tree([]), []);
});

test("progress is a share of a known whole", () => {
  assert.equal(progress({ value: 3, max: 4 }), 0.75);
  assert.equal(progress({ value: 9, max: 4 }), 1);
  for (const span of [{ value: 3, max: 0 }, { value: 3, max: null }, { value: null, max: 4 }, { value: 1, max: -1 }]) assert.equal(progress(span), null);
});

test("rows sort by any column, and what is unknown comes last both ways", () => {
  const rows = [{ key: "a", place: 0, gpu: 0, ended: 1, energy: 5, name: "b2" }, { key: "b", place: 1, gpu: 0, ended: 2, energy: null, name: "b10" },
    { key: "c", place: 2, gpu: 0, ended: 3, energy: 7, name: "" }];
  const keys = (key, descending) => sortRows(rows, key, descending).map((row) => row.key).join("");
  assert.equal(keys("energy", true), "cab");
  assert.equal(keys("energy", false), "acb");
  assert.equal(keys("name", false), "abc");
  assert.equal(keys("ended", true), "cba");
});

function hostileRows() {
  const sessions = new Sessions();
  sessions.applyEvents(events(end(1, { name: '=cmd|"x",1', node: "a|b\nc", job: "<b>", label: "@sum" }), usage(1, 0, { energy: 12.345678, net_energy: null, partial: true, shared: true })));
  // The usage event brings its own texts; these are the later ones.
  sessions.finished[0].name = '=cmd|"x",1';
  sessions.finished[0].label = "@sum";
  return finishedRows(sessions.finished);
}

test("CSV is quoted, unrounded, empty where unknown, and no formula", () => {
  const [head, line, rest] = toCsv(hostileRows()).split("\r\n");
  assert.match(head, /^ended,name,node,job,label,gpu,seconds \(s\),energy \(J\),net_energy \(J\)/);
  assert.equal(line, `${new Date(T + 1).toISOString()},"'=cmd|""x"",1","a|b\nc",<b>,'@sum,0,2,12.345678,,50,1073741824,60,partial shared`);
  assert.equal(rest, "");
});

test("Markdown has one line a row whatever the names hold", () => {
  const titles = COLUMNS.map(({ key }) => key);
  const lines = toMarkdown(hostileRows(), titles).trimEnd().split("\n");
  assert.equal(lines.length, 3);
  assert.match(lines[2], /=cmd\\\|"x",1 \| a\\\|b c \| \\<b\\>/);
  for (const line of lines) assert.equal(line.replaceAll("\\|", "").split("|").length, COLUMNS.length + 2);
});

test("times are short, and unknown ones a dash", () => {
  assert.deepEqual([0.424, 12.34, 245].map(secondsText), ["0.42 s", "12.3 s", "245 s"]);
  assert.equal(secondsText(null), DASH);
  assert.deepEqual([-1, 3.49, 125, 3725].map(runningTime), ["0.0 s", "3.4 s", "2:05 min", "1:02:05 h"]);
  assert.equal(runningTime(null), DASH);
});

test("every column and note has its texts", () => {
  const english = JSON.parse(readFileSync(new URL("../../web/locale/en.json", import.meta.url), "utf8"));
  const keys = [...COLUMNS.map(({ key }) => `column.${key}`), ...["abandoned", "partial", "estimated", "shared"].map((flag) => `flag.${flag}`)];
  for (const key of keys) for (const name of [key, `${key}.help`]) assert.ok(name in english, name);
});
