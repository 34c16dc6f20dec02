// As much of a browser as the dashboard needs, for its test. Not a browser: no layout, no CSS, and HTML only as index.html writes it.
"use strict";
const jobsToDo = []; // timers: [due, order, function]; time is moved by the test
let now = Date.parse("2026-01-01T01:00:00.000Z"), end = 0, order = 0;
Date.now = () => now;
const setTimeout = (f, ms) => { jobsToDo.push([now + (ms || 0), ++order, f]); return order; };
const clearTimeout = (id) => { const i = jobsToDo.findIndex((job) => job[1] === id); if (i >= 0) jobsToDo.splice(i, 1); };
const setInterval = () => 0;
function pass(ms) {
  jobsToDo.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (jobsToDo.length === 0 || jobsToDo[0][0] > now + ms) { now += ms; return false; }
  const [due, , f] = jobsToDo.shift();
  now = Math.max(now, due);
  f();
  return true;
}

class Target {
  addEventListener(kind, f) { (this.listeners = this.listeners || {})[kind] = [...((this.listeners || {})[kind] || []), f]; }
  fire(kind, target) {
    for (const f of (this.listeners || {})[kind] || []) f({ target: target || this, preventDefault() {} });
    if (this.parent) this.parent.fire(kind, target || this); // bubbles
  }
}
class Node extends Target {}
class TextNode extends Node {
  constructor(text) { super(); this.textContent = String(text); }
}
class Element extends Node {
  constructor(tag) {
    super();
    Object.assign(this, { tagName: tag, childNodes: [], attributes: {}, dataset: {}, hidden: false, disabled: false, open: false, id: "" });
    Object.assign(this, { scrollTop: 0, clientHeight: 0, scrollHeight: 0, chosen: undefined });
    this.classList = {
      add: (...names) => { this.className = [...this.className.split(" "), ...names].filter(Boolean).join(" "); },
      toggle: (name, on) => { this.className = [...this.className.split(" ").filter((n) => n !== name), ...(on ? [name] : [])].join(" "); },
    };
    this.className = "";
  }
  get children() { return this.childNodes.filter((n) => n instanceof Element); }
  get firstElementChild() { return this.children[0] || null; }
  get textContent() { return this.childNodes.map((n) => n.textContent).join(""); }
  set textContent(text) { this.childNodes = text === "" ? [] : [new TextNode(text)]; }
  append(...nodes) { for (const n of nodes) { const node = n instanceof Node ? n : new TextNode(n); node.parent = this; this.childNodes.push(node); } }
  replaceChildren(...nodes) { this.childNodes = []; this.append(...nodes); }
  replaceWith(other) { other.parent = this.parent; this.parent.childNodes[this.parent.childNodes.indexOf(this)] = other; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return name in this.attributes ? this.attributes[name] : null; }
  removeAttribute(name) { delete this.attributes[name]; }
  all() { return this.children.flatMap((c) => [c, ...c.all()]); }
  // Selectors of one step: tag, [attribute], [attribute=value], and both.
  querySelector(selector) {
    const [, tag, name, value] = /^([a-z]*)(?:\[([a-z-]+)(?:="?([^"\]]*)"?)?\])?$/.exec(selector);
    const of = (e) => (name && name.startsWith("data-") ? e.dataset[name.slice(5)] : e.getAttribute(name));
    return this.all().find((e) => (!tag || e.tagName === tag) && (!name || (of(e) !== undefined && of(e) !== null && (value === undefined || String(of(e)) === value)))) || null;
  }
  get tHead() { return this.children.find((e) => e.tagName === "thead"); }
  get tBodies() { return this.children.filter((e) => e.tagName === "tbody"); }
  get rows() { return this.children.filter((e) => e.tagName === "tr"); }
  get cells() { return this.children; }
  insertRow() { const row = new Element("tr"); this.append(row); return row; }
  insertCell() { const cell = new Element("td"); this.append(cell); return cell; }
  get elements() { return this.all().filter((e) => ["input", "select", "button"].includes(e.tagName)); }
  get name() { return this.attributes.name || ""; }
  get value() {
    if (this.tagName !== "select" || this.chosen !== undefined) return this.chosen === undefined ? this.attributes.value || "" : this.chosen;
    return this.children[0] ? this.children[0].value : "";
  }
  set value(value) {
    if (this.tagName === "select") this.chosen = this.all().some((o) => o.tagName === "option" && o.value === value) ? value : "";
    else this.chosen = value;
  }
  click() { if (!this.disabled) this.fire("click"); }
  focus() { document.activeElement = this; }
  showModal() { this.open = true; }
  close() { this.open = false; this.fire("close"); }
}

function parse(html) {
  const root = new Element("root"), open = [root], single = ["meta", "link", "input", "br", "!doctype"];
  for (const [, closing, tag, attributes, text] of html.matchAll(/<(\/?)([!a-z0-9]+)([^>]*)>|([^<]+)/g)) {
    const top = open[open.length - 1];
    if (text !== undefined) { if (text.trim()) top.append(text.trim()); continue; }
    if (closing) { open.pop(); continue; }
    const e = new Element(tag);
    for (const [, name, value] of attributes.matchAll(/([a-z-]+)(?:="([^"]*)")?/g)) {
      e.setAttribute(name, value || "");
      if (name.startsWith("data-")) e.dataset[name.slice(5)] = value;
      if (name === "hidden" || name === "disabled") e[name] = true;
      if (name === "class") e.className = value;
      if (name === "id") e.id = value;
    }
    top.append(e);
    if (!single.includes(tag)) open.push(e);
  }
  if (open.length !== 1) throw new Error("index.html does not close " + open[open.length - 1].tagName);
  return root;
}

class URLSearchParams {
  constructor(from) {
    this.map = new Map(typeof from === "string"
      ? from.replace(/^\?/, "").split("&").filter(Boolean).map((pair) => pair.split("=").map((s) => decodeURIComponent(s.replace(/\+/g, " "))))
      : Object.entries(from || {}).map(([k, v]) => [k, String(v)]));
  }
  get(name) { return this.map.has(name) ? this.map.get(name) : null; }
  has(name) { return this.map.has(name); }
  set(name, value) { this.map.set(name, String(value)); }
  delete(name) { this.map.delete(name); }
  get size() { return this.map.size; }
  [Symbol.iterator]() { return this.map[Symbol.iterator](); }
  toString() { return [...this.map].map(([k, v]) => encodeURIComponent(k) + "=" + encodeURIComponent(v)).join("&"); }
}
class FormData {
  constructor(form) { this.form = form; }
  [Symbol.iterator]() { return this.form.elements.filter((e) => e.name).map((e) => [e.name, e.value])[Symbol.iterator](); }
}
class TextDecoder { decode(bytes) { return String.fromCharCode(...bytes); } }
class TextDecoderStream {}
const AbortSignal = { timeout: () => undefined };
const CSS = { escape: (text) => text };
const sessionStorage = { items: {}, getItem(k) { return k in this.items ? this.items[k] : null; }, setItem(k, v) { this.items[k] = v; } };
const location = { pathname: "/", search: "" };
const history = { replaceState(_, __, url) { location.search = url.startsWith("?") ? url : ""; } };
const window = new Target();
const document = Object.assign(new Target(), { hidden: false, activeElement: null, createElement: (tag) => new Element(tag), getElementById: (id) => document.byId[id] || null });

const asked = []; // [path, Authorization]
function fetch(path, options) {
  asked.push([path, options.headers.Authorization || ""]);
  if (path === "/api/v1/events") return new Promise(() => {});
  const [status, body, headers] = answer(path, options.headers.Authorization || ""); // of the test
  return Promise.resolve({
    ok: status < 300, status, statusText: "", headers: { get: (name) => (headers || {})[name] || null },
    json: () => Promise.resolve(JSON.parse(body)), arrayBuffer: () => Promise.resolve(Uint8Array.from([...body].map((c) => c.charCodeAt(0))).buffer),
  });
}

function load(html, search) {
  const root = parse(html);
  document.byId = {};
  for (const e of root.all()) { if (e.id) document.byId[e.id] = e; if (e.tagName === "body") document.body = e; }
  location.search = search;
}
const shown = (id) => document.byId[id].textContent;
