// Reads the shards: scripts that call torchcompileShard with compressed documents. Classic scripts,
// because browsers load neither modules nor fetch() from the disk.
"use strict";

const Data = (() => {
  const registered = new Map(); // name of a pack -> its documents, compressed
  const loading = new Map(); // path of a script -> promise
  const documents = new Map(); // pack and key -> promise of the document

  globalThis.torchcompileShard = (name, content) => {
    registered.set(name, new Map(Object.entries(content)));
    if (name === "manifest") Page.start();
  };

  function script(path) {
    if (!loading.has(path)) {
      loading.set(
        path,
        new Promise((resolve, reject) => {
          const tag = document.createElement("script");
          tag.src = path;
          tag.onload = resolve;
          tag.onerror = () => {
            loading.delete(path);
            tag.remove();
            reject(new Error(`${path} cannot be loaded; load this page again`));
          };
          document.head.append(tag);
        }),
      );
    }
    return loading.get(path);
  }

  function style(path) {
    if (!loading.has(path)) {
      const tag = document.createElement("link");
      tag.rel = "stylesheet";
      tag.href = path;
      document.head.append(tag);
      loading.set(path, true);
    }
  }

  async function decode(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // The document with that key in that pack; null if the pack does not have it.
  function read(pack, key) {
    const place = `${pack} ${key}`;
    if (!documents.has(place)) {
      documents.set(
        place,
        (async () => {
          if (!registered.has(pack)) await script(`data/${pack}.js`);
          const text = registered.get(pack)?.get(key);
          return text === undefined ? null : decode(text);
        })(),
      );
      documents.get(place).catch(() => documents.delete(place));
    }
    return documents.get(place);
  }

  // A machine's index: which pack has which document.
  const index = (machine) => read(machine.index, "index");

  // A document of a machine; null if there is none of that key.
  async function of(machine, key) {
    const { packs, documents: places } = await index(machine);
    return Object.hasOwn(places, key) ? read(packs[places[key]], key) : null;
  }

  // The rows of a table of a document, as objects.
  function rows(table) {
    if (!table) return [];
    return table.rows.map((row) =>
      Object.fromEntries(table.columns.map((column, place) => [column, row[place]])),
    );
  }

  // The figures of all cells at a point.
  async function figures(machine, point) {
    const { documents: places } = await index(machine);
    const keys = Object.keys(places).filter((key) => key.startsWith(`figures/${point}/`));
    const tables = await Promise.all(keys.map((key) => of(machine, key)));
    return tables.flatMap(rows);
  }

  return { script, style, read, index, of, rows, figures };
})();
