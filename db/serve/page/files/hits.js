// Hits as cards. A card that stays in the answer stays on the page: its picture is not
// loaded again, nor the focus lost.

import { picture } from "./api.js";
import { bits } from "./chart.js";
import { bytes, h, plural } from "./dom.js";

// title is what an item is called: a field of the name name or title, else its key.
export function title(item, key) {
  for (const field of ["title", "name", "caption"]) {
    const value = item?.fields?.[field];
    if (typeof value === "string" && value) return value;
  }
  return key;
}

const long = 60; // letters from which on a field is text to be read

// prose is the text of an item: its payload, or else its longest field, if that is long.
export function prose(item) {
  if (item?.text) return item.text;
  const texts = Object.values(item?.fields ?? {}).filter((v) => typeof v === "string" && v.length > long && !v.startsWith("data:"));
  return texts.sort((a, b) => b.length - a.length)[0];
}

// cards shows items in an element. Entries are {key, item, distance, score, similarity, ranked}: with ranked the
// order is by words, and numbers would look unsorted. code is that of the query, state that of the page, href and
// onask are of a search from an item.
export function cards(parent, entries, { code, state, href, onask }) {
  const old = new Map([...parent.children].map((li) => [li.dataset.key, li]));
  const now = entries.map((e) => {
    const li = old.get(e.key) ?? make(e, state);
    const link = li.querySelector("a");
    link.href = href(e);
    link.onclick = (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      onask(e);
    };
    li.querySelector(".compared").replaceChildren(...compared(e, code));
    return li;
  });
  place(parent, now);
}

// place puts elements in order, moving only those that are elsewhere.
function place(parent, now) {
  const keep = new Set(now);
  for (const li of [...parent.children]) if (!keep.has(li)) li.remove();
  let at = parent.firstElementChild;
  for (const li of now) {
    if (li === at) at = at.nextElementSibling;
    else parent.insertBefore(li, at);
  }
}

function make(e, state) {
  const { item } = e;
  const name = title(item, e.key);
  const text = prose(item);
  return h("li", { class: "card", "data-key": e.key },
    item?.picture && h("div", { class: "picture" }, picture(state, e.key, item.picture, { loading: "lazy" }), h("span", { class: "like", "aria-hidden": true }, "more like this")),
    text && text !== name && h("p", { class: "text" }, text),
    h("div", { class: "body" },
      h("h2", {}, h("a", { href: "#" }, name, name !== e.key && h("span", { class: "unseen" }, `, ${e.key}`))),
      h("div", { class: "compared" }),
      tags(item, 4),
      fields(e, [name, text, ...(item?.labels ?? [])])));
}

// tags are the labels of an item, the first so many.
export function tags(item, most) {
  if (!item?.labels?.length) return null;
  return h("ul", { class: "tags", "aria-label": "Labels" }, item.labels.slice(0, most).map((l) => h("li", { title: l }, l)),
    item.labels.length > most && h("li", { title: item.labels.slice(most).join(", ") }, `+${item.labels.length - most}`));
}

// fields are those of an item that say more than what is shown already.
function fields({ item, key }, shown) {
  const pairs = Object.entries(item?.fields ?? {}).filter(([, v]) => !shown.includes(v) && !String(v).startsWith("data:"));
  if (!shown.includes(key)) pairs.unshift(["key", key]);
  if (item?.payload_bytes && !item.picture && !item.text) pairs.push(["payload", bytes(item.payload_bytes)]);
  if (!pairs.length) return null;
  return h("dl", { class: "fields" }, pairs.slice(0, 5).flatMap(([k, v]) => [h("dt", {}, k), h("dd", { title: v }, String(v))]));
}

// similarity has two digits after the point, or two that count where it is small, or six where it is
// as great as only inner products are.
const similarity = (x) => (x !== 0 && Math.abs(x) < 0.1 ? String(Number(x.toPrecision(2))) : Math.abs(x) >= 1e6 ? x.toPrecision(6) : x.toFixed(2));

function compared(e, code) {
  if (e.distance === undefined || e.ranked) return []; // of no search, or in an order by more than this
  if (e.distance === null) code = ""; // no codes were compared
  const theirs = e.item?.code;
  return [
    code && h("p", { class: "far" }, h("b", {}, plural(e.distance, "bit", "bits")),
      e.score !== null && h("span", { title: "how well the projection of the query agrees with the code" }, `score ${e.score.toFixed(1)}`)),
    e.similarity !== null && h("p", { class: "far similar", title: `${e.similarity}: ${code ? "what decides between items of one code" : "how near the vectors are, by the metric"}` },
      h("span", {}, "similarity"), h("span", {}, similarity(e.similarity))),
    code && bits(code, theirs),
  ].filter(Boolean);
}
