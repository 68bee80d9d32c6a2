// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

"use strict";

// The program adds check and format to this, and takes the catalog from it: it sees no constants.
var ctrlkit = { program: "", catalog: "", examples: {} };

(() => {
  const element = (id) => document.getElementById(id);
  const text = element("document"), definitions = element("definitions"), status = element("status");
  const colors = document.querySelector(".colors"), lines = document.querySelector(".lines");
  let mistakes = [];

  // tokens splits a document into pieces with a class for each, as far as it can be told from the
  // blocks that are open.
  function tokens(source) {
    const token = /(\/\/.*)|("(?:\\.|\$\{[^}\n]*\}?|[^"\\\n])*"?)|(\$\{[^}\n]*\}?)|(\n)|([{}()\[\],=])|([^\s{}()\[\],="$]+)|[^\S\n]+|./gy;
    const list = [], open = [];
    let words = 0, first = "", value = false;
    for (const [piece, comment, quoted, reference, end, mark, word] of source.matchAll(token)) {
      const block = open.at(-1) ?? "document";
      let color = "";
      if (comment) color = "comment";
      else if (quoted) color = "value";
      else if (reference) color = "reference";
      else if (word) {
        color = wordColor(block, words, first, word, value);
        if (words++ === 0) first = word;
      }
      if (mark === "{") { open.push(blockAfter(block, first)); words = 0; }
      else if (mark === "}") { open.pop(); words = 0; }
      else if (mark === "(" && block === "action") open.push("states");
      else if (mark === ")" && block === "states") open.pop();
      else if (mark === "=" || mark === "(") value = true;
      if (end && block !== "states") words = 0;
      if (end || mark === "{" || mark === "}") value = false;
      list.push([piece, color]);
    }
    return list;
  }

  const blockAfter = (block, first) => block === "document" ? "decl" : block === "decl" ? (first === "action" ? "action" : "state") : "selectors";

  function wordColor(block, words, first, word, value) {
    switch (block) {
      case "document":
        if (words === 0) return ["bind", "alias", "decl"].includes(word) ? "keyword" : "";
        if (first === "decl") return words === 2 && word === "for" ? "keyword" : words === 1 ? "name" : "kind";
        return words === 1 || first === "alias" ? "kind" : "value";
      case "decl": return ["state", "action"].includes(word) ? "keyword" : "";
      case "state": return words === 0 ? "name" : "kind";
      case "action": return "name";
      case "states": return "";
    }
    if (value) return "value";
    return words === 0 ? "keyword" : ["in", "notin"].includes(word) ? "keyword" : "";
  }

  // paint shows the document in colors, with a mark at each mistake.
  function paint() {
    const source = text.value;
    const cuts = [...mistakes].filter((m) => m.end <= source.length).sort((a, b) => a.start - b.start || b.end - a.end);
    const out = document.createDocumentFragment();
    let at = 0, next = 0, mark = null;
    const put = (piece, color) => {
      if (piece === "") return;
      const span = document.createElement("span");
      span.className = color;
      span.textContent = piece;
      (mark ?? out).append(span);
      at += piece.length;
    };
    const begin = () => {
      while (next < cuts.length && cuts[next].start < at) next++; // within the one before
      if (mark === null && next < cuts.length && cuts[next].start === at) {
        mark = document.createElement("mark");
        mark.className = cuts[next].severity + (cuts[next].start === cuts[next].end || source[at] === "\n" ? " empty" : "");
        mark.end = Math.max(cuts[next].end, at);
        out.append(mark);
        next++;
      }
    };
    const finish = () => { if (mark !== null && mark.end <= at) mark = null; };
    for (let [piece, color] of tokens(source)) {
      while (piece !== "") {
        begin();
        finish();
        const stop = mark !== null ? mark.end : next < cuts.length ? cuts[next].start : Infinity;
        const length = Math.min(piece.length, Math.max(stop - at, 1));
        put(piece.slice(0, length), color);
        piece = piece.slice(length);
        finish();
      }
    }
    begin();
    mark = null;
    out.append("\n");
    colors.replaceChildren(out);
    paintLines(source.split("\n").length);
  }

  function paintLines(count) {
    const worst = {};
    for (const m of mistakes) {
      if (m.severity === "error" || m.severity === "warning" && worst[m.line] !== "error") worst[m.line] = m.severity;
    }
    lines.replaceChildren(...Array.from({ length: count }, (_, i) => {
      const span = document.createElement("span");
      span.className = worst[i + 1] ?? "";
      span.textContent = `${i + 1}\n`;
      return span;
    }));
  }

  function listMistakes() {
    element("mistakes").replaceChildren(...mistakes.map((m) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.className = m.severity;
      const part = (name, kind, content) => {
        const e = document.createElement(name);
        e.className = kind;
        e.textContent = content;
        button.append(e);
      };
      part("span", "place", `line ${m.line}`);
      part("strong", "", m.severity);
      button.append(" ", m.message, ` [${m.code}]`);
      if (m.hint !== "") part("span", "hint", m.hint);
      button.addEventListener("click", () => { text.focus(); text.setSelectionRange(m.start, m.end); });
      item.append(button);
      return item;
    }));
  }

  const counted = (n, noun) => n === 1 ? `1 ${noun}` : `${n} ${noun}s`;

  function tell() {
    const count = (severity) => mistakes.filter((m) => m.severity === severity).length;
    const errors = count("error"), warnings = count("warning");
    const said = [errors && counted(errors, "error"), warnings && counted(warnings, "warning")].filter(Boolean).join(", ");
    status.textContent = said || "No mistakes";
    status.className = errors ? "error" : warnings ? "warning" : "";
  }

  // check shows what the compiler finds. The drawing is an image, so that nothing in it is run.
  function check() {
    if (!ctrlkit.check) { paint(); return; }
    const result = ctrlkit.check(text.value, definitions.value);
    if (result instanceof Error) {
      status.textContent = result.message;
      status.className = "error";
      return;
    }
    mistakes = result.mistakes;
    paint();
    listMistakes();
    tell();
    draw(result.drawing);
  }

  function draw(svg) {
    const drawing = element("drawing"), shown = svg !== "";
    drawing.hidden = !shown;
    element("nothing").hidden = shown;
    if (!shown) return;
    const url = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
    if (drawing.src !== url) drawing.src = url;
    drawing.alt = "The managers of the document: " + [...text.value.matchAll(/^\s*decl\s+(\S+)/gm)].map((m) => m[1]).join(", ");
  }

  // Colors follow each key, and the compiler when there is time: a paste of a long document does not
  // hold up the next key.
  let pending = 0;
  function changed() {
    mistakes = [];
    paint();
    clearTimeout(pending);
    pending = setTimeout(check, 80);
  }

  // replace keeps what Ctrl-Z undoes, which an assignment to value does not.
  function replace(from, to, inserted) {
    text.focus();
    text.setSelectionRange(from, to);
    document.execCommand(inserted === "" ? "delete" : "insertText", false, inserted);
  }

  text.addEventListener("input", changed);
  definitions.addEventListener("input", changed);
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const before = text.value.slice(0, text.selectionStart).split("\n").at(-1);
    const indent = before.match(/^\s*/)[0] + (/[{(]\s*$/.test(before) ? "    " : "");
    replace(text.selectionStart, text.selectionEnd, "\n" + indent);
  });
  element("format").addEventListener("click", () => {
    const formatted = ctrlkit.format(text.value);
    if (formatted !== text.value) replace(0, text.value.length, formatted);
  });
  element("example").addEventListener("change", () => show(element("example").value));

  function show(name) {
    const example = ctrlkit.examples[name];
    text.value = example.document;
    definitions.value = example.definitions;
    element("others").open = example.definitions !== "";
    mistakes = [];
    check();
  }

  async function expand(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  }

  ctrlkit.ready = () => {
    element("format").disabled = false;
    check();
  };

  ctrlkit.start = async () => {
    for (const name of Object.keys(ctrlkit.examples)) element("example").append(new Option(name));
    show(Object.keys(ctrlkit.examples)[0]);
    try {
      const go = new Go(); // of runner.js
      ctrlkit.catalog = await (await expand(ctrlkit.catalog)).text();
      const { instance } = await WebAssembly.instantiate(await (await expand(ctrlkit.program)).arrayBuffer(), go.importObject);
      ctrlkit.program = "";
      await go.run(instance);
      throw new Error("it ended"); // and said why on the console
    } catch (error) {
      status.textContent = `The compiler does not start: ${error.message}`;
      status.className = "error";
    }
  };
})();
