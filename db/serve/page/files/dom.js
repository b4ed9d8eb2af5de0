// Elements, and numbers as people read them.

const svgSpace = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// h makes an element; children that are strings become text, never markup.
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(svgSpace, tag), props, children);
}

export const $ = (id) => document.getElementById(id);

export const count = (n) => Math.round(n).toLocaleString("en");

export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

export function bytes(n) {
  let unit = 0;
  while (n >= 1000 && unit < 4) {
    n /= 1000;
    unit++;
  }
  return `${unit ? n.toFixed(1) : n} ${["bytes", "kB", "MB", "GB", "TB"][unit]}`;
}

// time spells microseconds.
export function time(us) {
  if (us < 1000) return `${us.toPrecision(us < 100 ? 2 : 3)} µs`;
  if (us < 1e6) return `${(us / 1000).toPrecision(3)} ms`;
  return `${(us / 1e6).toPrecision(3)} s`;
}

export const number = (x) => (x === undefined || x === null ? "–" : Number(x.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 }));

export const when = (t) => new Date(t).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

// list makes a description list of [name, value], leaving out what has no value.
export function list(pairs, props = { class: "list" }) {
  return h("dl", props, pairs.filter(([, v]) => v !== undefined && v !== null && v !== "")
    .map(([name, value]) => h("div", { class: "row" }, h("dt", {}, name), h("dd", {}, value))));
}

// table makes a table with a head; columns are names, those that begin with # hold numbers.
export function table(columns, rows, label) {
  const numeric = columns.map((c) => c.startsWith("#"));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { scope: "col", class: numeric[i] && "n" }, c.replace("#", ""))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) =>
        i ? h("td", { class: numeric[i] && "n" }, cell ?? "–") : h("th", { scope: "row", class: numeric[i] && "n" }, cell)))))));
}

export function notice(text) {
  return h("p", { class: "notice" }, text);
}

// failed says what went wrong, under a heading where the page has none.
export function failed(error, heading) {
  return h("div", { class: "notice bad", role: "alert" }, heading && h("h1", {}, heading), h("p", {}, error.message));
}
