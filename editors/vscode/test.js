// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

"use strict";

// Every word of each document that is right has a color by the grammar, and no color of a mistake.
// The documents are those of the compiler's tests.

const fs = require("fs"), path = require("path");
const textmate = require("vscode-textmate"), oniguruma = require("vscode-oniguruma");

const language = path.join(__dirname, "../../internal/language");

// documents returns the documents in a file, which may be an archive.
function documents(file) {
  const text = fs.readFileSync(file, "utf8");
  if (file.endsWith(".ctrlkit")) return [[file, text]];
  const parts = text.split(/^-- (.+) --\n/m);
  const found = [];
  for (let i = 1; i < parts.length; i += 2) {
    if (/\.(ctrlkit|cm)$/.test(parts[i])) found.push([`${file}: ${parts[i]}`, parts[i + 1]]);
  }
  return found;
}

function* files(directory) {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "wrong") yield* files(file);
    } else if (entry.name.endsWith(".ctrlkit") || directory.endsWith("right")) {
      yield file;
    }
  }
}

async function main() {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({ createOnigScanner: (s) => new oniguruma.OnigScanner(s), createOnigString: (s) => new oniguruma.OnigString(s) }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(path.join(__dirname, "syntaxes/ctrlkit.tmLanguage.json"), "utf8"), "x.json"),
  });
  const grammar = await registry.loadGrammar("source.ctrlkit");
  let checked = 0, wrong = 0;
  for (const file of files(language)) {
    for (const [name, text] of documents(file)) {
      checked++;
      let stack = textmate.INITIAL;
      text.split("\n").forEach((line, i) => {
        const { tokens, ruleStack } = grammar.tokenizeLine(line.replace(/\r$/, ""), stack);
        stack = ruleStack;
        for (const token of tokens) {
          const piece = line.slice(token.startIndex, token.endIndex), scope = token.scopes.at(-1);
          const plain = /^(source|meta)\./.test(scope);
          if (plain && /[^\s\uFEFF]/.test(piece) || scope.startsWith("invalid")) {
            wrong++;
            console.log(`${path.relative(language, name)}:${i + 1}: ${JSON.stringify(piece)} is ${scope}`);
          }
        }
      });
      if (stack.depth !== 1) {
        wrong++;
        console.log(`${path.relative(language, name)}: a block is open at the end`);
      }
    }
  }
  console.log(`${checked} documents, ${wrong} mistakes`);
  process.exitCode = wrong > 0 || checked < 15 ? 1 : 0;
}

main();
