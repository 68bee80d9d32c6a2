// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Keeps a page live: the server sends the elements that have changed. Without this script the page
// is complete, and stays as it was when it was loaded.

const connection = document.getElementById("connection");
const news = document.getElementById("news"); // read out, and not shown
document.documentElement.classList.add("script");
let version = document.body.dataset.version;
let source, lostAt, saying;

// say writes a text once: what is written again is read out again.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// tell reads out how the object of the page is, when that changes, and how many objects a list has.
function tell() {
  const now = document.querySelector("[data-said]")?.dataset.said ?? document.getElementById("count")?.firstChild.textContent;
  if (saying !== undefined && now !== saying) say(news, now ?? "");
  saying = now;
}

// make returns the element of some HTML that the server has made.
function make(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function apply(patch) {
  const fresh = new Map();
  for (const { id, html } of patch.set ?? []) fresh.set(id, make(html));
  const find = (id) => fresh.get(id) ?? document.getElementById(id);
  const before = new Map(); // what a person has opened, scrolled and chosen, also within what goes
  for (const [id, element] of fresh) {
    const old = document.getElementById(id);
    if (!old) continue;
    if (old.open) element.open = true;
    const scrolled = [...old.querySelectorAll(".scroll")].map((e) => [e.scrollLeft, e.scrollLeft + e.clientWidth >= e.scrollWidth - 4]);
    before.set(element, [scrolled, old.contains(document.activeElement) && document.activeElement.getAttribute("href")]);
  }
  for (const [id, element] of fresh) document.getElementById(id)?.replaceWith(element);
  for (const { id, within } of patch.order ?? []) {
    const parent = find(id);
    if (!parent) continue;
    const keep = new Set(within);
    for (const child of [...parent.children]) if (child.dataset.live !== undefined && !keep.has(child.id)) child.remove();
    let after = null;
    for (let i = within.length - 1; i >= 0; i--) {
      const child = find(within[i]);
      if (!child) continue;
      if (child.parentNode !== parent || child.nextSibling !== after) parent.insertBefore(child, after);
      after = child;
    }
  }
  for (const element of fresh.values()) {
    const [scrolled, focused] = before.get(element) ?? [[]];
    [...element.querySelectorAll(".scroll")].forEach((e, i) => {
      const [left, atEnd] = scrolled[i] ?? [0, true];
      e.scrollLeft = atEnd && "end" in e.dataset ? e.scrollWidth : left;
    });
    if (focused) element.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }
  version = patch.version;
  ages();
  tell();
}

function open() {
  source?.close();
  const url = new URL(location.href);
  url.hash = "";
  url.searchParams.set("stream", "1");
  url.searchParams.set("version", version);
  const screen = innerWidth < 700 ? "narrow" : innerWidth >= 1680 ? "wide" : "";
  if (screen) url.searchParams.set("screen", screen);
  source = new EventSource(url);
  source.addEventListener("open", () => {
    lostAt = undefined;
    say(connection, "live");
    connection.className = "connection good";
    document.body.classList.remove("lost");
  });
  source.addEventListener("error", () => {
    lostAt ??= new Date();
    say(connection, `connection lost at ${lostAt.toLocaleTimeString()}, trying again: this is how it was then`);
    connection.className = "connection bad";
    document.body.classList.add("lost");
    if (source.readyState === EventSource.CLOSED) reload(source); // the browser does not try again
  });
  source.addEventListener("patch", (event) => apply(JSON.parse(event.data)));
}

// reload shows the page as it is now, where there is no stream: a server has a limit of viewers.
async function reload(refused) {
  let again = 2000;
  try {
    const response = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const content = response.ok && page.getElementById("content");
    if (content && source === refused) {
      document.getElementById("content").replaceWith(document.adoptNode(content));
      version = page.body.dataset.version;
      say(connection, `not live, reloaded at ${new Date().toLocaleTimeString()}`);
      document.body.classList.remove("lost");
      again = 10000;
      ages();
    }
  } catch {
    // The server does not answer.
  }
  setTimeout(() => source === refused && !document.hidden && open(), again);
}

// Without a connection, a link is opened only if the server answers; otherwise the page stays.
document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[href]:not([href^='#'])");
  if (!link || !document.body.classList.contains("lost") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  try {
    await fetch(link.href, { cache: "no-store" });
    location.assign(link.href);
  } catch {
    say(connection, `“${link.textContent.trim()}” can't be opened: the connection was lost at ${lostAt?.toLocaleTimeString()}`);
  }
});

// A command is copied, or selected where a page may not copy.
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button.copy");
  if (!button) return;
  const command = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(command.textContent);
    say(news, "copied");
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 2000);
  } catch {
    getSelection().selectAllChildren(command);
  }
});

// ages shows times as how long ago they are.
function ages() {
  const now = Date.now();
  for (const element of document.querySelectorAll("time")) {
    const at = new Date(element.dateTime);
    element.title ||= at.toLocaleString();
    const text = age((now - at) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

function age(seconds) {
  const future = seconds < -1;
  const s = Math.max(0, Math.round(Math.abs(seconds)));
  const text = s < 120 ? `${s}s` : s < 7200 ? `${Math.round(s / 60)}m` : s < 172800 ? `${Math.round(s / 3600)}h` : `${Math.round(s / 86400)}d`;
  return future ? `in ${text}` : `${text} ago`;
}

// The filter works as one types.
const form = document.querySelector("form[role=search]");
if (form) {
  let timer;
  const filter = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    history.replaceState(null, "", `${location.pathname}?${query}`);
    version = "";
    open();
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 120);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filter();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select")) {
      event.preventDefault();
      form.elements.q.focus();
    }
  });
}

// An address with the id of a reconcile opens what is said of it.
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target?.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView({ block: "nearest" });
  }
}
addEventListener("hashchange", reveal);
reveal();

for (const element of document.querySelectorAll("[data-end]")) element.scrollLeft = element.scrollWidth;
setInterval(ages, 1000);
ages();
tell();
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close();
  else open();
});
addEventListener("pagehide", () => source?.close());
addEventListener("pageshow", (event) => event.persisted && open());
open();
