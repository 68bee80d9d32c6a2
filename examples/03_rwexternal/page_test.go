// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var pageObjects = flag.Int("page-objects", 60, "how many objects the page lists")

// A person finds the object that is stuck on something else than the others, sees what it lacks, mends
// it with another client, and sees it leave the list: in a browser, without a reload.
func TestPage(t *testing.T) {
	rings.Test(t, "starts a control plane and a browser")
	browser := newBrowser(t)
	address, proxy := servePage(t)
	tab := func(what string, actions ...chromedp.Action) {
		t.Helper()
		ctx, cancel := context.WithTimeout(browser, time.Minute+time.Duration(*pageObjects)*50*time.Millisecond) // one worker reconciles all
		defer cancel()
		if err := chromedp.Run(ctx, actions...); err != nil {
			var html string
			_ = chromedp.Run(browser, chromedp.OuterHTML("body", &html)) // to show what there was
			t.Fatalf("%s: %v in the page:\n%.6000s", what, err, html)
		}
	}
	// contains waits until an element contains a text.
	contains := func(selector, text string) chromedp.Action {
		return until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q) === true`, selector, text))
	}
	lacks := func(selector, text string) chromedp.Action {
		return until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q) === false`, selector, text))
	}
	mark := chromedp.Evaluate(`document.body.dataset.loaded = "once"`, nil)
	same := chromedp.WaitReady(`body[data-loaded=once]`) // the page was not loaded again

	tab("the overview", chromedp.Navigate(address), contains("#connection", "live"), contains("#kinds", "RWExternal"))
	tab("the list", settled(chromedp.Click(`nav a[href="objects"]`)), contains("#count", fmt.Sprintf("%d objects", *pageObjects+1)), mark)
	tab("the filter", settled(chromedp.SendKeys(`input[name=q]`, "rare")), contains("#count", fmt.Sprintf("1 of %d objects", *pageObjects+1)), same)
	tab("the object", settled(chromedp.Click(`.row a`)), contains(".advice", "Secret "+proxy.namespace+"/rare"), contains("#connection", "live"), mark)

	exampletest.Must(t, proxy.cluster.Create(t.Context(), &corev1.Secret{ObjectMeta: proxy.cluster.In("rare"), StringData: map[string]string{"dividend": "7", "divisor": "2"}}))
	tab("mending", contains("#head .state.good", "ready"), lacks("#content", "What to do"), same)
	tab("its timeline", settled(chromedp.Click(`#strip a[href^=timeline]`)), contains("#reconciles", "Secret "+proxy.namespace+"/rare was created"), chromedp.WaitVisible(`svg.runs .run.good`))
	tab("back", chromedp.NavigateBack(), contains("#head .state.good", "ready"), chromedp.NavigateBack(), contains("#count", fmt.Sprintf("0 of %d objects", *pageObjects+1)))
	tab("forward", chromedp.NavigateForward(), contains("#head .state.good", "ready"), contains("#connection", "live"), mark)

	proxy.down.Store(true)
	proxy.server.CloseClientConnections()
	tab("a lost connection", contains("#connection", "connection lost"), same)
	proxy.down.Store(false)
	tab("a connection that heals", contains("#connection", "live"), same)
}

// settled does something to an element, again if the element is replaced between finding and using it.
func settled(action chromedp.Action) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			err := action.Do(ctx)
			if err == nil || !strings.Contains(err.Error(), "Could not find node") {
				return err
			}
		}
	})
}

// until waits for a condition of the page, also over the loading of another one.
func until(condition string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var holds bool
			if err := chromedp.Evaluate(condition, &holds).Do(ctx); err == nil && holds {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s does not become true: %w", condition, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// A pageProxy stands between the browser and the operator, and can be down.
type pageProxy struct {
	down      atomic.Bool
	server    *httptest.Server
	cluster   *exampletest.Cluster
	namespace string
}

// servePage runs the operator with many objects that lack one Secret, and one that lacks another.
func servePage(t *testing.T) (address string, p *pageProxy) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	exampletest.Must(t, err)
	metrics := listener.Addr().String()
	exampletest.Must(t, listener.Close())

	c := exampletest.NewCluster(t, &shared, simScheme(t))
	config, options := c.Operator(t, "rwexternal")
	options.Metrics.BindAddress = metrics
	mgr, err := rwExternal.Manager(config, options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
	create := func(name, secret string) {
		exampletest.Must(t, c.Create(t.Context(), &v1.RWExternal{ObjectMeta: c.In(name), Spec: v1.RWExternalSpec{InputSecret: secret}}))
	}
	create("special", "rare")
	for i := range *pageObjects {
		create(fmt.Sprintf("common-%d", i), "missing")
	}

	p = &pageProxy{cluster: c, namespace: c.Namespace}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: metrics})
	proxy.FlushInterval, proxy.ErrorLog = -1, log.New(io.Discard, "", 0)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { p.server.CloseClientConnections(); p.server.Close() })
	return p.server.URL + view.Path, p
}

// newBrowser starts Chromium without a window. Without one on the machine, the test is skipped.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium on this machine: on Debian, apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, //nolint:gocritic // a copy
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(cancel)
	var said strings.Builder
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }))
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("starting %s: %v %s", program, err, said.String())
	}
	return ctx
}
