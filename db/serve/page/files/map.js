// A map of the space: items in a plane, by what they are like, with their labels as colours.

import { at, latest, post, view } from "./api.js";
import { collectionOf, mayChange } from "./database.js";
import { $, count, failed, h, notice, plural } from "./dom.js";
import { title } from "./hits.js";
import { cardsOf as cards, downloads, label, remove } from "./item.js";
import { picker } from "./models.js";
import { from, grid } from "./search.js";

const coloured = 8; // labels that have a colour of their own
const shown = 60; // cards of chosen items

let drawn = null; // the map that is shown: {of, map, chosen, hidden}

// redraw has the next view of the map draw it anew, as items have changed.
export const redraw = () => (drawn = null);

export async function map(state, database, change, written) {
  const of = JSON.stringify([state.database, state.collection, state.space, state.where, collectionOf(database, state).items]);
  // A map that is there already is only drawn; what another view has asked for is dropped all the same.
  const { result, error } = await view(async (signal) => (drawn?.of === of ? drawn.map : post(at(state, ":map"), { where: state.where }, signal)));
  if (!result && !error) return;
  if (drawn?.of !== of) {
    if (error) {
      $("content").replaceChildren(heading(state, database, change), failed(error));
      return;
    }
    drawn = { of, map: result, chosen: new Set(), hidden: new Set(), at: -1 };
  }
  const page = { state, database, collection: collectionOf(database, state), written, ask: (changes) => change(changes, "go") };
  const { map: m } = drawn;
  if (!m.keys.length) {
    $("content").replaceChildren(heading(state, database, change), notice(m.total ? "These items have nothing to draw: neither codes nor vectors." : "No items."));
    return;
  }
  const canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": `Map of ${plural(m.keys.length, "item", "items")}. Arrow keys go to the next item, Space chooses it, Enter searches from it.` });
  const tip = h("p", { class: "tip", role: "status" });
  const below = h("div", { id: "chosen" });
  const basis = m.by ? `the vectors of ${m.by}` : "the codes";
  $("content").replaceChildren(heading(state, database, change),
    h("p", { class: "hint" }, `${m.keys.length < m.total ? `${count(m.keys.length)} of ${count(m.total)} items: those that have any, at random where there are many` : plural(m.total, "item", "items")}; by ${basis}: two directions, ${Math.round(100 * m.shown)} % of how they differ. Click on an item to search from it; draw around some to choose them.`),
    filter(state, change), legend(() => paint(canvas)), h("div", { class: "map" }, canvas, tip), below);
  listen(canvas, tip, page, below);
  paint(canvas);
  cardsOf(page, below);
  $("status").textContent = `Map of ${plural(m.keys.length, "item", "items")}`;
}

const heading = (state, database, change) => h("div", { class: "title" }, h("h1", {}, "Map"), picker(state, database, change));

function filter(state, change) {
  const input = h("input", { type: "search", class: "mono", id: "mapWhere", placeholder: "label = 'cat'", value: state.where });
  const go = (event) => {
    event.preventDefault();
    change({ where: input.value }, "go");
  };
  return h("form", { class: "pair", onsubmit: go }, h("label", { for: "mapWhere" }, "Only where"), input);
}

// place returns where item i is on a canvas.
function place(canvas, i) {
  const { x, y } = drawn.map;
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  const room = 14;
  return [wide / 2 + x[i] * (wide / 2 - room), high / 2 - y[i] * (high / 2 - room)];
}

const visible = (i) => !drawn.hidden.has(group(i));

// group is the colour of an item: the place of its label, or of all others.
const group = (i) => (drawn.map.label[i] < 0 || drawn.map.label[i] >= coloured ? coloured : drawn.map.label[i]);

function paint(canvas, lasso) {
  const scale = devicePixelRatio || 1;
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = wide * scale;
  canvas.height = high * scale;
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const colours = Array.from({ length: coloured + 1 }, (_, c) => style.getPropertyValue(`--c${c}`));
  const { keys } = drawn.map;
  const some = drawn.chosen.size > 0;
  const size = keys.length > 3000 ? 2.2 : keys.length > 500 ? 3 : 4.5;
  for (let c = coloured; c >= 0; c--) { // those without a colour lie below
    g.fillStyle = colours[c];
    for (let i = 0; i < keys.length; i++) {
      if (group(i) !== c || !visible(i)) continue;
      g.globalAlpha = some && !drawn.chosen.has(i) ? 0.15 : 0.85;
      const [px, py] = place(canvas, i);
      g.beginPath();
      g.arc(px, py, size, 0, 7);
      g.fill();
    }
  }
  g.globalAlpha = 1;
  g.strokeStyle = style.getPropertyValue("--ink");
  g.lineWidth = 2;
  if (drawn.at >= 0) {
    const [px, py] = place(canvas, drawn.at);
    g.beginPath();
    g.arc(px, py, size + 4, 0, 7);
    g.stroke();
  }
  if (lasso?.length > 1) {
    g.beginPath();
    lasso.forEach(([px, py]) => g.lineTo(px, py));
    g.closePath();
    g.stroke();
  }
}

function legend(repaint) {
  const { map: m } = drawn;
  const items = new Array(coloured + 1).fill(0);
  m.keys.forEach((_, i) => items[group(i)]++);
  const rest = m.labels.length > coloured ? "other labels, or none" : "no label";
  return h("ul", { class: "legend", "aria-label": "Labels" }, items.map((n, c) => n > 0 && h("li", {},
    h("button", { type: "button", "aria-pressed": String(!drawn.hidden.has(c)), onclick: (event) => {
      if (!drawn.hidden.delete(c)) drawn.hidden.add(c);
      event.currentTarget.setAttribute("aria-pressed", String(!drawn.hidden.has(c)));
      repaint();
    } }, h("i", { class: `dot c${c}` }), c < coloured ? m.labels[c] : rest, h("span", {}, count(n))))));
}

function nearest(canvas, px, py, within) {
  let best = -1;
  let least = within * within;
  for (let i = 0; i < drawn.map.keys.length; i++) {
    if (!visible(i)) continue;
    const [x, y] = place(canvas, i);
    const d = (x - px) ** 2 + (y - py) ** 2;
    if (d < least) [best, least] = [i, d];
  }
  return best;
}

// towards returns the next item in the direction of an arrow key: near, and not far aside.
function towards(canvas, from, dx, dy) {
  let best = from;
  let least = Infinity;
  const [x0, y0] = place(canvas, from);
  for (let i = 0; i < drawn.map.keys.length; i++) {
    if (i === from || !visible(i)) continue;
    const [x, y] = place(canvas, i);
    const along = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    if (along > 0.5 && along + 2 * aside < least) [best, least] = [i, along + 2 * aside];
  }
  return best;
}

const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function listen(canvas, tip, page, below) {
  const { map: m } = drawn;
  let lasso = null;
  let frame = 0;
  const where = (event) => [event.offsetX, event.offsetY];
  const go = (i) => page.ask(from(page.state, m.keys[i]));
  const tell = (i) => {
    drawn.at = i;
    tip.textContent = i < 0 ? "" : `${m.keys[i]}${m.label[i] >= 0 ? ` · ${m.labels[m.label[i]]}` : ""}`;
    if (i < 0) return;
    const [px, py] = place(canvas, i);
    tip.style.left = `${Math.min(px + 12, canvas.clientWidth - 160)}px`;
    tip.style.top = `${Math.max(py - 30, 0)}px`;
  };
  canvas.addEventListener("pointerdown", (event) => {
    lasso = [where(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (lasso) lasso.push(where(event));
    else tell(nearest(canvas, ...where(event), 14));
    cancelAnimationFrame(frame); // moves come faster than a screen shows them
    frame = requestAnimationFrame(() => paint(canvas, lasso));
  });
  canvas.addEventListener("pointercancel", () => (lasso = null));
  canvas.addEventListener("pointerup", (event) => {
    const path = lasso ?? [];
    lasso = null;
    const [x0, y0] = path[0] ?? [0, 0];
    if (path.every(([x, y]) => Math.hypot(x - x0, y - y0) < 6)) { // a click
      const i = nearest(canvas, ...where(event), 14);
      if (i >= 0) go(i);
      else choose(page, canvas, below, []);
      return;
    }
    choose(page, canvas, below, m.keys.map((_, i) => i).filter((i) => visible(i) && inside(path, place(canvas, i))));
  });
  canvas.addEventListener("keydown", (event) => {
    if (arrows[event.key]) {
      const i = drawn.at < 0 ? nearest(canvas, canvas.clientWidth / 2, canvas.clientHeight / 2, Infinity) : towards(canvas, drawn.at, ...arrows[event.key]);
      tell(i);
      paint(canvas);
    } else if (event.key === "Enter" && drawn.at >= 0) go(drawn.at);
    else if (event.key === " " && drawn.at >= 0) {
      const now = new Set(drawn.chosen);
      if (!now.delete(drawn.at)) now.add(drawn.at);
      choose(page, canvas, below, [...now]);
    } else if (event.key === "Escape") choose(page, canvas, below, []);
    else return;
    event.preventDefault();
  });
  const sized = new ResizeObserver(() => (canvas.isConnected ? paint(canvas) : sized.disconnect()));
  sized.observe(canvas);
}

function choose(page, canvas, below, items) {
  drawn.chosen = new Set(items);
  paint(canvas);
  $("status").textContent = `${plural(items.length, "item", "items")} chosen`;
  cardsOf(page, below);
}

// inside reports whether a point lies within a path, which is closed.
function inside(path, [x, y]) {
  let is = false;
  for (let i = 0, j = path.length - 1; i < path.length; j = i++) {
    const [[xi, yi], [xj, yj]] = [path[i], path[j]];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) is = !is;
  }
  return is;
}

const newestCards = latest();

// cardsOf shows the chosen items, and what can be done with them.
async function cardsOf(page, below) {
  const keys = [...drawn.chosen].map((i) => drawn.map.keys[i]);
  if (!keys.length) {
    newestCards(async () => {}); // what is under way is dropped
    below.replaceChildren();
    return;
  }
  const { result, error } = await newestCards((signal) => cards(page.state, keys.slice(0, shown), false, signal));
  if (error) below.replaceChildren(failed(error));
  if (!result) return;
  const entries = result.map((item) => ({ key: item.key, item }));
  const named = keys.length === 1 ? title(entries[0]?.item, keys[0]) : `${count(keys.length)} items`;
  below.replaceChildren(h("div", { class: "headline" }, h("h2", {}, plural(keys.length, "item", "items"), keys.length > shown && `, the first ${shown} of them`),
    h("div", { class: "tools" }, mayChange(page.database, page.collection) && [
      h("button", { type: "button", class: "button", onclick: () => label(page, keys) }, "Label"),
      h("button", { type: "button", class: "button", onclick: () => remove(page, keys, named) }, "Delete")], downloads(page.state, entries))),
    grid(page.state, entries, "", page.ask));
}
