// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// The key leads to the page that was asked for, and to no other machine. What is answered in place
// of the page is not kept, and passes its address on to none.
func TestGuardedAnswers(t *testing.T) {
	g := newGuarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Page", "yes") }))
	ask := func(target string, change func(*http.Request)) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/", nil)
		r.URL, _ = url.ParseRequestURI(target) //nolint:errcheck // a wrong one panics below
		change(r)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Result()
	}
	asIs := func(*http.Request) {}
	for target, want := range map[string]string{
		"/?key=":                         "/",
		"/objects?q=a&key=":              "/objects?q=a",
		"/object?kind=Job&name=a&key=":   "/object?kind=Job&name=a",
		"//evil.com/?key=":               "/evil.com/",
		"///evil.com/..//evil.com/?key=": "/evil.com/",
		"/%2fevil.com/?key=":             "/evil.com/",
		"/%5Cevil.com?key=":              "/evil.com",
		"/..//evil.com?key=":             "/evil.com",
	} {
		got := ask(target+g.key, asIs)
		if location := got.Header.Get("Location"); got.StatusCode != http.StatusSeeOther || location != want {
			t.Errorf("%s: %s, to %q; want %q", target, got.Status, location, want)
		}
		checkProtected(t, target, got)
	}
	for name, change := range map[string]func(*http.Request){
		"without a key": asIs,
		"wrong cookie":  func(r *http.Request) { r.AddCookie(&http.Cookie{Name: g.cookie, Value: "no"}) },
	} {
		got := ask("/objects", change)
		if got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", name, got.Status)
		}
		checkProtected(t, name, got)
	}
	if got := ask("/objects", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: g.cookie, Value: g.key}) }); got.Header.Get("Page") == "" {
		t.Errorf("with the cookie: %s", got.Status)
	}
}

func checkProtected(t *testing.T, name string, got *http.Response) {
	t.Helper()
	if got.Header.Get("Page") != "" || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%s: headers %v", name, got.Header)
	}
}
