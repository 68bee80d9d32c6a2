// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const documents = { scheme: "file", language: "ctrlkit" };

// client talks to "ctrlkit lsp". It also has the Go files, since an action leads to its method and
// back.
let client;

async function start() {
  const command = vscode.workspace.getConfiguration("ctrlkit").get("path");
  const files = vscode.workspace.createFileSystemWatcher("**/*.{ctrlkit,cm,go,yaml,yml,json}");
  client = new LanguageClient("ctrlkit", "ctrlkit", { command, args: ["lsp"] }, {
    documentSelector: [documents, { scheme: "file", language: "go" }],
    synchronize: { fileEvents: files },
  });
  try {
    await client.start();
  } catch (error) {
    files.dispose();
    client = undefined;
    const settings = "Open Settings";
    const answer = await vscode.window.showErrorMessage(`"${command} lsp" does not start: ${error.message}`, settings);
    if (answer === settings) await vscode.commands.executeCommand("workbench.action.openSettings", "ctrlkit.path");
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

// Drawing is a panel beside the text with the picture of the document that is edited.
class Drawing {
  show(document) {
    this.document = document;
    if (this.panel) {
      this.panel.reveal(undefined, true);
    } else {
      this.panel = vscode.window.createWebviewPanel("ctrlkit.drawing", "Drawing", { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true }, {});
      this.panel.onDidDispose(() => { this.panel = undefined; });
    }
    return this.update();
  }

  follow(document) {
    if (!this.panel || document?.languageId !== "ctrlkit") return;
    this.document = document;
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.update(), 150);
  }

  async update() {
    const document = this.document;
    if (!this.panel || !client) return;
    let body;
    try {
      // The client has sent what was typed before.
      const svg = await client.sendRequest("workspace/executeCommand", { command: "ctrlkit.drawing", arguments: [document.uri.toString(), "svg"] });
      body = `<img alt="The managers of the document" src="data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}">`;
    } catch (error) {
      body = `<p>${error.message.replace(/[<&]/g, (c) => `&#${c.charCodeAt(0)};`)}</p>`;
    }
    if (!this.panel || document !== this.document) return;
    this.panel.title = `Drawing of ${document.uri.path.split("/").at(-1)}`;
    // The picture is an image and the page has no script, so that nothing in a document is run.
    this.panel.webview.html = `<!doctype html><html lang="en"><head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>img { max-width: 100%; } .vscode-dark img { color-scheme: dark; } .vscode-light img { color-scheme: light; }</style>
</head><body>${body}</body></html>`;
  }
}

exports.activate = async (context) => {
  const drawing = new Drawing();
  context.subscriptions.push(
    vscode.commands.registerTextEditorCommand("ctrlkit.showDrawing", (editor) => drawing.show(editor.document)),
    vscode.commands.registerCommand("ctrlkit.restart", async () => { await stop(); await start(); }),
    vscode.workspace.onDidChangeTextDocument((event) => drawing.follow(event.document)),
    vscode.window.onDidChangeActiveTextEditor((editor) => drawing.follow(editor?.document)),
  );
  await start();
};

exports.deactivate = stop;
