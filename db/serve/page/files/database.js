// What the page knows of the database: its collections, and what the token may do.

import { at, base, get } from "./api.js";

// open asks for the databases of the server and the figures of one: {names, name, version, scope, collections}.
export async function open(name) {
  const server = await get("/v1");
  const chosen = name || server.databases[0];
  if (!chosen) throw new Error("The server has no databases for this token.");
  const database = { names: server.databases, name: chosen, version: server.version, scope: server.scope };
  await refresh(database);
  return database;
}

// refresh asks for the figures again. What is known of collections beyond them stays.
export async function refresh(database) {
  const before = new Map((database.collections ?? []).map((c) => [c.name, c]));
  const figures = await get(base({ database: database.name }));
  database.figures = figures;
  database.collections = figures.collections.map((c) => ({ ...c, modalities: c.modalities ?? [], fields: c.fields ?? [],
    loaded: before.get(c.name)?.loaded, encoders: before.get(c.name)?.encoders ?? [], pictures: before.get(c.name)?.pictures ?? [], spaces: before.get(c.name)?.spaces ?? [] }));
}

// load asks for what the form needs to know of a collection.
export async function load(database, collection) {
  const of = { database: database.name, collection: collection.name };
  const [{ texts, files }, { spaces }] = await Promise.all([get(at(of)), get(at(of, "/spaces"))]);
  Object.assign(collection, { encoders: texts ?? [], pictures: files ?? [], spaces, loaded: true });
}

export const collectionOf = (database, state) => database.collections.find((c) => c.name === state.collection);

export const spaceOf = (collection, state) =>
  collection?.spaces.find((s) => String(s.space) === state.space) ?? collection?.spaces.find((s) => s.space === collection.space);

export const mayWrite = (database) => database.scope === "write" || database.scope === "admin";
