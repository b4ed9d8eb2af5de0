// The page: its state, and which view shows it.

import { alike } from "./alike.js";
import { signIn } from "./api.js";
import { collectionOf, load, open, refresh } from "./database.js";
import { $, failed, h, notice, plural } from "./dom.js";
import { figures } from "./figures.js";
import * as form from "./form.js";
import { map, redraw } from "./map.js";
import { models } from "./models.js";
import * as search from "./search.js";
import { address, parse } from "./state.js";

let database = null;
let state = parse(new URL(location));

// change moves on to another state. While something moves, the address follows when it
// rests: browsers refuse to change it often. Words are a step of their own where those before
// had stood for a while.
let resting = 0;
let typed = 0; // when words were, the last time
const pause = 2000; // ms between two queries that are each worth going back to
function change(changes, how) {
  const before = address(state);
  state = { ...state, ...changes };
  return known(() => moved(before, changes, how));
}

function moved(before, changes, how) {
  state = form.complete(database, state);
  clearTimeout(resting);
  if (how === "type" && performance.now() - typed > pause) history.pushState(null, "", address(state));
  if (how === "type") typed = performance.now();
  if (how === "move" || how === "type") resting = setTimeout(() => history.replaceState(null, "", address(state)), 250);
  else if (address(state) !== before || location.pathname + location.search !== before) history.pushState(null, "", address(state));
  show();
  if (how === "go" && "key" in changes && changes.by === "key") scrollTo({ top: 0 });
}

// known calls then, once what the form needs of the collection is known: at once, if it is.
function known(then) {
  const collection = collectionOf(database, state) ?? collectionOf(database, { collection: "main" }) ?? database.collections[0];
  if (!collection || collection.loaded) return then();
  return load(database, collection).then(then, tell);
}

// written shows a state again after a change of the database.
async function written(changes = {}) {
  redraw();
  await refresh(database).catch(tell);
  await change(changes, "go");
}

const tell = (error) => $("content").replaceChildren(failed(error, "No answer"));

function show(anew) {
  form.show(database, state, anew);
  for (const a of document.querySelectorAll("nav a")) {
    const current = a.dataset.view === state.view;
    if (current) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
    a.href = address({ ...state, view: a.dataset.view });
  }
  const collection = collectionOf(database, state);
  $("database").textContent = `${database.name}${collection ? ` · ${plural(collection.items, "item", "items")}` : ""}`;
  document.title = `${{ map: "Map of ", alike: "Duplicates in ", models: "Models of ", stats: "Figures of " }[state.view] ?? ""}${database.name} – fddhdb`;
  if (!collection) $("content").replaceChildren(notice("The database has no collections yet."));
  else if (state.view === "models") models(state, database, change, written);
  else if (state.view === "stats") figures(state, database, change);
  else if (state.view === "alike") alike(state, database, change, written);
  else if (state.view === "map") map(state, database, change, written);
  else search.show(state, database, (changes) => change(changes, "go"), written);
}

// askToken asks for a token, where the server wants one.
function askToken(error) {
  const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": "why" });
  const enter = (event) => {
    event.preventDefault();
    signIn(input.value);
    start();
  };
  $("form").hidden = true;
  $("layout").classList.add("wide");
  $("content").replaceChildren(h("form", { class: "notice token", onsubmit: enter },
    h("h1", {}, "This server needs a token"),
    h("p", { id: "why" }, error.status === 403 ? error.message : "Whoever runs it makes one: fddhdb token FILE --name NAME. It stays in this tab."),
    h("label", { for: "token" }, "Token"), input, h("button", { class: "button" }, "Enter")));
  input.focus();
}

let connected = false;

async function start() {
  try {
    database = await open(state.database);
  } catch (error) {
    if (error.status === 401 || error.status === 403) askToken(error);
    else tell(error);
    return;
  }
  $("form").hidden = false;
  Object.assign(state, { database: database.name, alone: database.names.length < 2 });
  if (!connected) connect();
  connected = true;
  await known(() => {
    state = form.complete(database, state);
    show();
  });
}

function connect() {
  form.connect(change, database, () => state);
  addEventListener("popstate", () => {
    clearTimeout(resting);
    const next = parse(new URL(location));
    if ((next.database || database.names[0]) !== database.name) {
      location.reload();
      return;
    }
    state = { ...next, database: database.name, alone: state.alone };
    known(() => {
      state = form.complete(database, state);
      show(true);
    });
  });
  for (const a of document.querySelectorAll("nav a, #home")) {
    a.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      const blank = { view: "search", key: "", text: "", code: "", picture: "", upload: "", where: "", by: "", sample: 0 };
      change(a.id === "home" ? blank : { view: a.dataset.view }, "go");
      $("view").focus({ preventScroll: true });
    });
  }
}

start();
