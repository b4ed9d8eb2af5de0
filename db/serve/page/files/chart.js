// Charts: SVG, with a table of the same numbers for whoever does not see them.

import { count, h, number, plural, svg, table } from "./dom.js";

// histogram draws how many items are at each distance. It stands above a slider of the same
// scale, whose thumb is so many pixels wide: bar d is above the thumb at d.
export function histogram(figure, form) {
  const thumb = 18;
  const width = figure.clientWidth || 256;
  const step = (width - thumb) / form.bits;
  const most = Math.max(...form.distances, 1);
  const bar = Math.max(1, Math.min(step - (step > 3 ? 1 : 0), 14));
  const bars = form.distances.map((n, d) => {
    if (!n) return null;
    const tall = Math.max(2, 62 * Math.sqrt(n / most)); // roots: a few near items are to be seen
    return svg("rect", { x: thumb / 2 + d * step - bar / 2, y: 64 - tall, width: bar, height: tall, "data-d": d },
      svg("title", {}, `${plural(d, "bit", "bits")}: ${plural(n, "item", "items")}`));
  });
  figure.replaceChildren(svg("svg", { viewBox: `0 0 ${width} 64`, role: "img", "aria-label": summary(form) }, bars));
}

// distances is the same as a table.
export function distances(form) {
  let sum = 0;
  const rows = form.distances.map((n, d) => [String(d), count(n), count((sum += n))]).filter((_, d) => form.distances[d]);
  return table(["#bits", "#items", "#within"], rows, "Items by distance");
}

function summary(form) {
  const nearest = form.distances.findIndex((n) => n);
  if (nearest < 0) return "Distances: no items";
  let half = 0;
  for (let sum = form.distances[0]; sum * 2 < form.items; sum += form.distances[half]) half++;
  return `Distances of ${plural(form.items, "item", "items")}: the nearest at ${plural(nearest, "bit", "bits")}, half within ${half}`;
}

// shade marks the bars from one distance to another.
export function shade(figure, least, most) {
  for (const bar of figure.querySelectorAll("rect")) bar.classList.toggle("in", least <= Number(bar.dataset.d) && Number(bar.dataset.d) <= most);
}

// bits draws which bits of two codes, in hexadecimal, differ.
export function bits(a, b) {
  if (!a || !b || a.length !== b.length) return null;
  let d = "";
  for (let i = 0; i < a.length; i += 2) {
    const x = parseInt(a.slice(i, i + 2), 16) ^ parseInt(b.slice(i, i + 2), 16);
    for (let j = 0; x >> j; j++) if ((x >> j) & 1) d += `M${i * 4 + j} 0h1v1h-1z`;
  }
  return svg("svg", { class: "bits", viewBox: `0 0 ${a.length * 4} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d }));
}

const styles = ["", "second", "third"];

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

// lines draws series of [x, y] with a common scale; x is what is along it.
export function lines(title, series, x) {
  const all = series.flatMap((s) => s.points);
  if (new Set(all.map((p) => p[0])).size < 2) return null; // a point is in the tables
  const [left, right, top, bottom] = [46, 388, 8, 98];
  const xs = all.map((p) => p[0]);
  const ys = all.map((p) => p[1]);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  let [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  if (y0 === y1) [y0, y1] = [y0 - 1, y1 + 1];
  const px = (v) => left + ((v - x0) / (x1 - x0)) * (right - left);
  const py = (v) => bottom - ((v - y0) / (y1 - y0)) * (bottom - top);
  const spoken = series.map((s) => `${s.name}: ${s.points.map((p) => `${number(p[1])} at ${number(p[0])}`).join(", ")}`).join("; ");
  return h("figure", { class: "chart" },
    h("figcaption", {}, title, series.length > 1 && series.map((s, i) => [h("i", { class: `key ${styles[i % 3]}` }), s.name])),
    svg("svg", { viewBox: "0 0 400 120", role: "img", "aria-label": `${title}. ${spoken}` },
      svg("line", { x1: left, x2: right, y1: bottom, y2: bottom }),
      svg("line", { x1: left, x2: right, y1: top, y2: top }),
      svg("text", { x: left - 6, y: top + 4, "text-anchor": "end" }, short.format(y1)),
      svg("text", { x: left - 6, y: bottom + 4, "text-anchor": "end" }, short.format(y0)),
      svg("text", { x: left, y: 116 }, `${x} ${number(x0)}`),
      svg("text", { x: right, y: 116, "text-anchor": "end" }, number(x1)),
      series.map((s, i) => svg("g", { class: styles[i % 3] },
        svg("path", { d: s.points.map((p, j) => `${j ? "L" : "M"}${px(p[0])} ${py(p[1])}`).join("") }),
        s.points.map((p) => svg("circle", { cx: px(p[0]), cy: py(p[1]), r: 3 }))))));
}
