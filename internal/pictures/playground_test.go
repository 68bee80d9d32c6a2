// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// startPlayground opens the page from the disk, without a server.
func startPlayground(t *testing.T) context.Context {
	t.Helper()
	browser, stop, err := newBrowser(context.WithoutCancel(t.Context()))
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	browser, cancel := context.WithTimeout(browser, 3*time.Minute)
	t.Cleanup(cancel)
	address, err := buildPlayground(t.Context(), "../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var said string
	err = chromedp.Run(browser, screen(1280, 800, "light"), chromedp.Navigate(address),
		chromedp.Poll(`document.getElementById("status").textContent !== "The compiler is loading."`, nil), chromedp.Text("#status", &said))
	if err != nil || said != "No mistakes" {
		t.Fatalf("the page says %q, with the error %v", said, err)
	}
	return browser
}

// A mistake that one types is underlined and listed, and goes when it is corrected; the picture
// follows what one types.
func TestPlayground(t *testing.T) {
	rings.Explore(t, "compiles a program for the browser, and types in it")
	rings.Reads(t, "../..")
	browser := startPlayground(t)
	run := func(what string, actions ...chromedp.Action) {
		t.Helper()
		for _, action := range actions {
			ctx, cancel := context.WithTimeout(browser, time.Minute)
			defer cancel()
			if err := chromedp.Run(ctx, action); err != nil {
				var shown string
				_ = chromedp.Run(browser, chromedp.Evaluate(`document.getElementById("document").value + document.getElementById("mistakes").innerText`, &shown))
				t.Fatalf("%s: %v, with\n%s", what, err, shown)
			}
		}
	}
	until := func(condition string) chromedp.Action { return chromedp.Poll(condition, nil) }
	const drawn = `decodeURIComponent(document.getElementById("drawing").src)`
	empty := chromedp.Evaluate(`(() => { const e = document.getElementById("document"); e.focus(); e.select(); document.execCommand("delete"); })()`, nil)
	typed := func(text string) chromedp.Action { return chromedp.SendKeys("#document", text, chromedp.ByID) }

	run("no document", empty, chromedp.WaitVisible("#nothing"))
	run("a document", typed("decl Web for Deployment {\nstate {\npods []Pod {\nlabels/app=web\nowned\n}\n}\naction {\nSync(pod"),
		until(drawn+`.includes("Sync")`), until(`document.querySelector("#mistakes .error")?.textContent.includes("CK0")`))
	run("a mistake", typed(")\n}\n}\n"), until(`[...document.querySelectorAll("mark.error")].map((m) => m.textContent).join() === "pod"`),
		until(`document.querySelector("#mistakes").textContent.includes('did you mean "pods"')`), until(`document.getElementById("status").textContent === "1 error"`))
	run("its place", chromedp.Click("#mistakes button"), until(`(() => { const e = document.getElementById("document"); return e.value.slice(e.selectionStart, e.selectionEnd) === "pod"; })()`))
	run("the remedy", chromedp.Evaluate(`document.execCommand("insertText", false, "pods")`, nil),
		until(`document.querySelectorAll("mark.error").length === 0 && document.getElementById("status").textContent === "No mistakes"`))
	run("another state", until(`!`+drawn+`.includes("settings")`),
		chromedp.Evaluate(`(() => { const e = document.getElementById("document"), at = e.value.indexOf("pods []"); e.focus(); e.setSelectionRange(at, at); })()`, nil),
		typed("settings ConfigMap {\nname=web\n}\n"), until(drawn+`.includes("settings")`))
	run("the layout", chromedp.Click("#format"), until(`document.getElementById("document").value.includes("\n        settings ConfigMap {\n            name=web\n        }\n")`))
	run("definitions", example("Kinds of your own"), until(`document.getElementById("status").textContent === "No mistakes"`),
		chromedp.Evaluate(`(() => { const e = document.getElementById("definitions"); e.value = ""; e.dispatchEvent(new Event("input")); })()`, nil),
		until(`document.querySelector("#mistakes .error")?.textContent.includes("there is no definition")`))
}

// The page is accessible, in both schemes, narrow and wide.
func TestPlaygroundAccessible(t *testing.T) {
	rings.Explore(t, "compiles a program for the browser")
	rings.Reads(t, "../..")
	source := axe(t)
	browser := startPlayground(t)
	for _, width := range []int64{360, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			var wide int64
			err := chromedp.Run(browser, screen(width, 800, scheme), example("With mistakes"), chromedp.WaitVisible("#mistakes .error"),
				chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide))
			if err != nil || wide > width {
				t.Errorf("%s: the page is %d pixels wide on a screen of %d, %v", scheme, wide, width, err)
			}
			found, err := check(browser, source)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range found {
				t.Errorf("%d pixels, %s: %s: %s\n%.1500v", width, scheme, p.ID, p.Help, p.Nodes)
			}
		}
	}
}
