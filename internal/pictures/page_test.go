// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ctrlkit/ctrlkit/internal/pictures/stage"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// views are the addresses of all views.
func views(s *stage.Stage) map[string]string {
	return map[string]string{
		"overview": "", "objects": "objects", "filtered": "objects?q=quota", "none": "objects?q=nowhere",
		"object": "object?" + s.Address(4), "missing": "object?" + s.Address(1000), "ready": "object?" + s.Address(0), "timeline": "timeline?" + s.Address(4),
	}
}

func startPage(t *testing.T) (browser context.Context, s *stage.Stage, address string) {
	t.Helper()
	browser, stop, err := newBrowser(context.WithoutCancel(t.Context()))
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	browser, cancel := context.WithTimeout(browser, 2*time.Minute)
	t.Cleanup(cancel)
	s = stage.New(60)
	address, end := s.Serve(make(chan struct{}))
	t.Cleanup(end)
	return browser, s, address
}

// reportPage is the address of a report of the simulator, the one of the tests of package report.
func reportPage(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs("../sim/report/testdata/report.html")
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// axeVersion is the version of axe-core, which the test alone uses.
const axeVersion = "4.10.3"

// axe returns the source of axe-core, from the cache of npm or its registry. Without npm, or a
// registry that answers, the test is skipped.
func axe(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm on this machine, which the test gets axe-core with: on Debian, apt-get install npm")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pack := exec.CommandContext(ctx, npm, "pack", "--silent", "--prefer-offline", "axe-core@"+axeVersion)
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		t.Skipf("npm can't get axe-core: %v\n%s", err, out)
	}
	unpack := exec.CommandContext(ctx, "tar", "-xzf", "axe-core-"+axeVersion+".tgz", "package/axe.min.js")
	unpack.Dir = dir
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpacking axe-core: %v\n%s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// A problem is what axe-core finds.
type problem struct {
	ID, Help string
	Nodes    []struct {
		HTML           string
		FailureSummary string
	}
}

// check runs axe-core on the page that the browser shows. It does so through the protocol of the
// browser, so that the policy of the page holds.
func check(ctx context.Context, source string) (found []problem, err error) {
	var text string
	err = chromedp.Run(ctx, chromedp.Evaluate(source+";0", nil), chromedp.Evaluate(
		`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`, &text,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if err != nil {
		return nil, err
	}
	return found, json.Unmarshal([]byte(text), &found)
}

// Every view and the report of the simulator is accessible, in both schemes, narrow and wide, and
// nothing of it stands beside a narrow screen.
func TestAccessible(t *testing.T) {
	rings.Explore(t, "loads each view four times")
	source := axe(t)
	browser, s, address := startPage(t)
	pages := map[string]string{"report": reportPage(t)}
	for name, view := range views(s) {
		pages[name] = address + view
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		ready := ".connection.good"
		if name == "report" {
			ready = "article"
		}
		for _, width := range []int64{360, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				var wide float64
				if err := chromedp.Run(browser, screen(width, 800, scheme), chromedp.Navigate(pages[name]), chromedp.WaitReady(ready),
					chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if int64(wide) > width {
					t.Errorf("%s, %s: the page is %v pixels wide on a screen of %d", name, scheme, wide, width)
				}
				found, err := check(browser, source)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, p := range found {
					t.Errorf("%s, %d pixels, %s: %s: %s\n%.1500v", name, width, scheme, p.ID, p.Help, p.Nodes)
				}
			}
		}
	}
	// The test can fail.
	found := []problem(nil)
	err := chromedp.Run(browser, chromedp.Evaluate(`document.querySelector("main").insertAdjacentHTML("beforeend", "<button></button><img src=x>")`, nil))
	if err == nil {
		found, err = check(browser, source)
	}
	if err != nil || len(found) < 2 {
		t.Errorf("a button and a picture without names: %d problems, %v", len(found), err)
	}
}

// Without a mouse, a person reaches each view and each part of it with Tab and Enter, in the order
// in which it is read, and sees what has the focus.
func TestKeyboard(t *testing.T) {
	rings.Explore(t, "presses hundreds of keys in a browser")
	browser, s, address := startPage(t)
	run := func(what string, actions ...chromedp.Action) {
		t.Helper()
		if err := chromedp.Run(browser, actions...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	// tabTo presses Tab until an element has the focus.
	tabTo := func(selector string) {
		t.Helper()
		for range 80 {
			var state struct {
				There, Visible bool
			}
			run(selector, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(fmt.Sprintf(`(() => {
				const e = document.activeElement, style = getComputedStyle(e);
				return {There: e.matches(%q), Visible: e === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2};
			})()`, selector), &state))
			if !state.Visible {
				var html string
				run("what has the focus", chromedp.Evaluate(`document.activeElement.outerHTML`, &html))
				t.Fatalf("one does not see the focus of %.300s", html)
			}
			if state.There {
				return
			}
		}
		t.Fatalf("Tab does not reach %s", selector)
	}
	enter := chromedp.KeyEvent(kb.Enter)
	live := chromedp.WaitReady(".connection.good")

	run("the overview", screen(1280, 800, "light"), chromedp.Navigate(address), live)
	tabTo("a.skip")
	tabTo(`nav a[href="./"]`)
	tabTo(".states a")
	tabTo(".trouble a")
	run("a group", enter, chromedp.WaitReady("#count"), live)
	run("all objects", chromedp.Navigate(address+"objects"), live, chromedp.WaitReady("#count"))
	tabTo("input[name=q]")
	run("the filter", chromedp.KeyEvent("db-4"), chromedp.WaitReady(`.row a[href*="name=db-4&"], .row a[href$="name=db-4&namespace=shop"]`))
	tabTo("select[name=kind]")
	tabTo("input[name=namespace]")
	tabTo(".chips a")
	tabTo(".row a")
	run("an object", enter, chromedp.WaitReady(".flow svg"), live)
	tabTo(".flow")
	tabTo(`#strip a[href^="timeline"]`)
	run("the timeline", enter, chromedp.WaitReady("svg.runs"), live, chromedp.WaitNotPresent("#strip"))
	tabTo(".timeline")
	tabTo("details.reconcile summary")
	run("a reconcile", enter, chromedp.WaitReady("details.reconcile[open]"))
	s.Change(4) // the element is replaced, and keeps the focus
	run("its element", chromedp.WaitReady("details.reconcile[open] summary"))
}

// Below a step that fails, what is ready has no color of a failure. Without a connection, what the page
// shows is grey, and a link says that it can't be opened instead of leading to an error.
func TestColorsAndLostConnection(t *testing.T) {
	rings.Explore(t, "loads a page in a browser")
	browser, stop, err := newBrowser(context.WithoutCancel(t.Context()))
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	browser, cancel := context.WithTimeout(browser, 2*time.Minute)
	t.Cleanup(cancel)
	s := stage.New(60)
	address, end := s.Serve(make(chan struct{}))
	var inherited, before bool
	var said, title string
	err = chromedp.Run(browser, screen(1280, 800, "light"), chromedp.Navigate(address+"object?"+s.Address(4)), chromedp.WaitReady(".connection.good"),
		chromedp.Evaluate(`getComputedStyle(document.querySelector(".bad .chain .good .why")).color !== getComputedStyle(document.body).color`, &inherited),
		chromedp.Evaluate(`document.body.classList.contains("lost")`, &before),
		chromedp.ActionFunc(func(context.Context) error { end(); return nil }),
		chromedp.WaitReady("body.lost"), chromedp.Click(`nav a[href="objects"]`), chromedp.WaitReady("body.lost"),
		chromedp.Poll(`document.getElementById("connection").textContent.includes("can't be opened")`, nil),
		chromedp.Text("#connection", &said), chromedp.Title(&title))
	if err != nil || inherited || before || !strings.Contains(said, "Objects") || !strings.Contains(title, "db-4") {
		t.Errorf("error %v; a ready child has a color: %v; lost before: %v; said %q on the page %q", err, inherited, before, said, title)
	}
}

// States that stand side by side in a bar differ in color. On the screen of a phone, the names of
// the views stand in one line, and a timeline of few reconciles fills the width without
// scrolling.
func TestBarAndPhone(t *testing.T) {
	rings.Explore(t, "loads pages in a browser")
	browser, s, address := startPage(t)
	for _, scheme := range []string{"light", "dark"} {
		var fills []string
		if err := chromedp.Run(browser, screen(1280, 800, scheme), chromedp.Navigate(address), chromedp.WaitReady(".connection.good"),
			chromedp.Evaluate(`[...document.querySelectorAll(".bar rect")].map((e) => getComputedStyle(e).fill)`, &fills)); err != nil {
			t.Fatal(err)
		}
		if all := len(fills); all < 4 || len(slices.Compact(slices.Sorted(slices.Values(fills)))) != all {
			t.Errorf("%s: the states of a bar have the colors %q", scheme, fills)
		}
	}
	var navigation, timeline, window, bars float64
	if err := chromedp.Run(browser, screen(360, 800, "light"), chromedp.Navigate(address+"timeline?"+s.Address(4)), chromedp.WaitReady(".connection.good"),
		chromedp.Evaluate(`document.querySelector("nav").offsetHeight`, &navigation), chromedp.Evaluate(`document.querySelector(".runs").clientWidth`, &timeline),
		chromedp.Evaluate(`Math.max(...[...document.querySelectorAll(".run rect")].map((e) => e.getBoundingClientRect().right))`, &bars),
		chromedp.Evaluate(`document.querySelector(".timeline").clientWidth`, &window)); err != nil || navigation > 30 || timeline > window || bars < 240 {
		t.Errorf("%v; the names of the views take %v pixels of height, the timeline %v of %v of width, its reconciles end at %v", err, navigation, timeline, window, bars)
	}
}

// What has changed is read out: the state of the object, not each event.
func TestChangesAreReadOut(t *testing.T) {
	rings.Explore(t, "loads a page in a browser")
	browser, s, address := startPage(t)
	var before, after, kind string
	err := chromedp.Run(browser, chromedp.Navigate(address+"object?"+s.Address(4)), chromedp.WaitReady(".connection.good"),
		chromedp.Evaluate(`document.querySelector("#news").textContent`, &before), chromedp.Evaluate(`document.querySelector("#news").ariaLive`, &kind),
		chromedp.ActionFunc(func(context.Context) error { s.Change(4); return nil }), // it becomes ready
		chromedp.Poll(`document.querySelector("#news").textContent !== ""`, nil, chromedp.WithPollingTimeout(20*time.Second)),
		chromedp.Evaluate(`document.querySelector("#news").textContent`, &after))
	if err != nil || before != "" || kind != "polite" || after != "db-4 ready" {
		t.Errorf("%v; of kind %q, %q and after the change %q is read out", err, kind, before, after)
	}
}

// A timeline that is wider than the screen shows the latest reconciles, also when the stream has
// replaced all of the page, as it does for a version that it does not know.
func TestTimelineShowsTheLatest(t *testing.T) {
	rings.Explore(t, "loads a page in a browser")
	browser, s, address := startPage(t)
	for range 6 {
		s.Change(4)
	}
	var wide, hidden float64
	err := chromedp.Run(browser, screen(500, 800, "light"), chromedp.Navigate(address+"object?"+s.Address(4)), chromedp.WaitReady(".connection.good"),
		chromedp.ActionFunc(func(context.Context) error { s.Change(4); return nil }),
		chromedp.Poll(`document.querySelectorAll("details.reconcile").length === 10`, nil),
		chromedp.Evaluate(`document.querySelector("[data-end]").scrollWidth`, &wide),
		chromedp.Evaluate(`(() => { const e = document.querySelector("[data-end]"); return e.scrollWidth - e.clientWidth - e.scrollLeft })()`, &hidden))
	if err != nil || wide < 500 || hidden > 4 {
		t.Errorf("%v; of a timeline of %v pixels, the last %v are not shown", err, wide, hidden)
	}
}

// No byte of a page, of its stream, or of its summary has a value of an object.
func TestNothingIsBetrayed(t *testing.T) {
	s := stage.New(60)
	address, end := s.Serve(make(chan struct{}))
	defer end()
	for name, view := range views(s) {
		for _, stream := range []bool{false, true} {
			target := address + view
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			if stream {
				target = address + strings.Replace(view+"?stream=1", "?stream", map[bool]string{true: "&stream", false: "?stream"}[strings.Contains(view, "?")], 1)
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body := make([]byte, 4<<20)
			n, err := io.ReadAtLeast(response.Body, body, 200)
			if n < 200 || strings.Contains(string(body[:n]), stage.Canary) {
				t.Errorf("%s (stream: %v): %d bytes, %v, with a value of an object or without anything:\n%.2000s", name, stream, n, err, body[:n])
			}
			if !stream {
				rest, _ := io.ReadAll(response.Body)
				if strings.Contains(string(rest), stage.Canary) {
					t.Errorf("%s has a value of an object", name)
				}
			}
			cancel()
			_ = response.Body.Close()
		}
	}
}
