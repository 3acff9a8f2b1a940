// Draws lanes of history on a canvas: one strip a number, one above the other, on one axis of time.

import { known } from "./format.js";

/**
 * @typedef {Object} Lane
 * @property {string} colour any CSS colour
 * @property {number} max the value at the top; the bottom is 0
 */

/**
 * Draws everything anew.
 * @param {HTMLCanvasElement} canvas
 * @param {Object} picture
 * @param {Lane[]} picture.lanes
 * @param {Array<{t: number, values: Array<?number>}>} picture.points oldest first
 * @param {number} picture.from time at the left edge
 * @param {number} picture.to time at the right edge
 * @param {number} picture.gapMs neighbours further apart are not joined
 * @param {?number} picture.cursor a time to mark
 * @param {{grid: string, cursor: string}} picture.ink
 * @param {number} picture.laneHeight CSS pixels
 * @param {number} picture.laneGap CSS pixels
 */
export function drawChart(canvas, picture) {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (width === 0 || height === 0) return;
  const context = prepare(canvas, width, height);
  const x = (t) => ((t - picture.from) / (picture.to - picture.from)) * width;
  picture.lanes.forEach((lane, i) => {
    const top = i * (picture.laneHeight + picture.laneGap);
    const box = { top, bottom: top + picture.laneHeight, width };
    drawFrame(context, picture, box, x);
    drawLane(context, picture, lane, i, box, x);
  });
  if (picture.cursor !== null) drawCursor(context, picture, x, height);
}

function prepare(canvas, width, height) {
  const density = globalThis.devicePixelRatio || 1;
  const pixelWidth = Math.round(width * density), pixelHeight = Math.round(height * density);
  if (canvas.width !== pixelWidth) canvas.width = pixelWidth;
  if (canvas.height !== pixelHeight) canvas.height = pixelHeight;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Distance of the vertical lines: about five in a window. */
export function gridStep(spanMs) {
  return [10e3, 15e3, 30e3, 60e3, 120e3, 180e3, 300e3].find((step) => spanMs / step <= 6) ?? 600e3;
}

function drawFrame(context, { from, to, ink }, { top, bottom, width }, x) {
  context.fillStyle = ink.grid;
  context.fillRect(0, bottom - 1, width, 1);
  context.fillRect(0, top, width, 1);
  const step = gridStep(to - from);
  for (let t = to - step; t > from; t -= step) context.fillRect(Math.round(x(t)), top, 1, bottom - top);
}

function drawLane(context, { points, gapMs }, lane, index, { top, bottom }, x) {
  const reach = bottom - top - 3;
  const y = (value) => bottom - 1 - Math.min(1, Math.max(0, value / lane.max)) * reach;
  context.strokeStyle = context.fillStyle = lane.colour;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  for (const run of runs(points, index, gapMs)) {
    if (run.length === 1) {
      context.fillRect(x(run[0].t) - 1, y(run[0].values[index]) - 1, 2, 2);
      continue;
    }
    context.beginPath();
    for (const { t, values } of run) context.lineTo(x(t), y(values[index]));
    context.stroke();
    context.lineTo(x(run.at(-1).t), bottom - 1);
    context.lineTo(x(run[0].t), bottom - 1);
    context.globalAlpha = 0.13;
    context.fill();
    context.globalAlpha = 1;
  }
}

/**
 * Cuts points into stretches without a gap: neither an unknown value nor a hole in time is drawn across.
 * @param {Array<{t: number, values: Array<?number>}>} points
 * @param {number} lane
 * @param {number} gapMs
 * @returns {Array<Array<{t: number, values: Array<?number>}>>}
 */
export function runs(points, lane, gapMs) {
  const found = [];
  let run = [];
  for (const point of points) {
    const isKnown = known(point.values[lane]);
    const broken = run.length > 0 && point.t - run.at(-1).t > gapMs;
    if ((broken || !isKnown) && run.length > 0) {
      found.push(run);
      run = [];
    }
    if (isKnown) run.push(point);
  }
  if (run.length > 0) found.push(run);
  return found;
}

function drawCursor(context, { cursor, ink }, x, height) {
  context.fillStyle = ink.cursor;
  context.fillRect(Math.round(x(cursor)), 0, 1, height);
}
