// The page: its state, and which view shows it.

import { get } from "./api.js";
import { $, failed, notice, plural } from "./dom.js";
import { figures } from "./figures.js";
import * as form from "./form.js";
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
  state = form.complete(database, { ...state, ...changes });
  clearTimeout(resting);
  if (how === "type" && performance.now() - typed > pause) history.pushState(null, "", address(state));
  if (how === "type") typed = performance.now();
  if (how === "move" || how === "type") resting = setTimeout(() => history.replaceState(null, "", address(state)), 250);
  else if (address(state) !== before || location.pathname + location.search !== before) history.pushState(null, "", address(state));
  show();
  if (how === "go" && "key" in changes && changes.by === "key") scrollTo({ top: 0 });
}

function show(anew) {
  form.show(database, state, anew);
  for (const a of document.querySelectorAll("nav a")) {
    const current = a.dataset.view === state.view;
    if (current) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
    a.href = address({ ...state, view: a.dataset.view });
  }
  const collection = form.collectionOf(database, state);
  $("database").textContent = `${database.name}${collection ? ` · ${plural(collection.items, "item", "items")}` : ""}`;
  document.title = `${{ models: "Models of ", stats: "Figures of " }[state.view] ?? ""}${database.name} – fddhdb`;
  if (!collection) $("content").replaceChildren(notice("The database has no collections yet."));
  else if (state.view === "models") models(state, database, change);
  else if (state.view === "stats") figures(state, database, change);
  else search.show(state, collection, (changes) => change(changes, "go"));
}

async function start() {
  try {
    database = await get("database");
  } catch (error) {
    $("content").replaceChildren(failed(error, "No answer"));
    return;
  }
  state = form.complete(database, state);
  form.connect(change, database, () => state);
  addEventListener("popstate", () => {
    clearTimeout(resting);
    state = form.complete(database, parse(new URL(location)));
    show(true);
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
  show();
}

start();
