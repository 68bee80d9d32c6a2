// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ctrlkit/ctrlkit/journal"
)

var databases = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}

// A world is the objects and the journal of an operator.
type world struct {
	t        testing.TB
	activity *Activity
	ring     *journal.Ring
	observer journal.Observer
	server   *Server

	mu       sync.Mutex
	objects  map[types.NamespacedName]*unstructured.Unstructured
	handlers map[int]toolscache.ResourceEventHandler
	follows  int
	runs     int
	refuse   error // of Follow
}

func newWorld(t testing.TB) *world {
	w := &world{
		t: t, activity: NewActivity(), ring: journal.NewRing(journal.RingOptions{}),
		objects: map[types.NamespacedName]*unstructured.Unstructured{}, handlers: map[int]toolscache.ResourceEventHandler{},
	}
	w.observer = journal.Observers(w.ring, w.activity)
	w.server = New(Options{
		Name: "shop", Objects: w, Activity: w.activity, Entries: w.ring.Entries, Known: w.ring.Objects, Pace: time.Millisecond,
		Queues: func() map[string]int { return map[string]int{"database": 7} },
	})
	return w
}

func (w *world) Kinds() []schema.GroupKind { return []schema.GroupKind{databases.GroupKind()} }

func (w *world) Follow(_ schema.GroupKind, handler func(schema.GroupVersionKind) toolscache.ResourceEventHandler) (func(), func() bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return nil, nil, w.refuse
	}
	h := handler(databases)
	for _, obj := range w.objects {
		h.OnAdd(obj, true)
	}
	w.follows++
	id := w.follows
	w.handlers[id] = h
	stop := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.handlers, id)
	}
	return stop, func() bool { return true }, nil
}

func (w *world) Get(_ context.Context, o journal.Object) (*unstructured.Unstructured, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.Kind != databases.Kind {
		return nil, "", errors.New("this operator does not reconcile objects of the kind " + o.Kind)
	}
	return w.objects[o.Key()], "databases.example.com", nil
}

// none is the reason for which put leaves the status out.
const none = "none"

// put changes an object: its condition Ready has a reason and a message, and is True without one.
func (w *world) put(name, reason, message string) {
	status := "False"
	if reason == "" {
		status, reason = "True", "Ready"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Database",
		"metadata": map[string]any{"namespace": "shop", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec":     map[string]any{"password": "canary-of-the-spec"},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}},
	}}
	if reason == none {
		delete(obj.Object, "status")
	}
	key := types.NamespacedName{Namespace: "shop", Name: name}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.objects[key]
	w.objects[key] = obj
	for _, h := range w.handlers {
		if before == nil {
			h.OnAdd(obj, false)
		} else {
			h.OnUpdate(before, obj)
		}
	}
}

func (w *world) remove(name string) {
	key := types.NamespacedName{Namespace: "shop", Name: name}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.objects[key]
	delete(w.objects, key)
	for _, h := range w.handlers {
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: before})
	}
}

func database(name string) journal.Object {
	return journal.Object{Group: databases.Group, Kind: databases.Kind, Namespace: "shop", Name: name}
}

// reconcile notes a reconcile of an object with some events.
func (w *world) reconcile(o journal.Object, cause journal.Cause, result journal.Result, events ...journal.Event) {
	events = append([]journal.Event{journal.StepBegan{Step: "First"}}, events...)
	w.runs++
	run := journal.NewRun(w.observer, types.UID(fmt.Sprint(w.runs)), strings.ToLower(o.Kind), o)
	run.Note(w.t.Context(), journal.Started{Causes: []journal.Cause{cause}})
	for _, event := range events {
		run.Note(w.t.Context(), event)
	}
	finished := journal.Finished{Result: result, Duration: 20 * time.Millisecond}
	if ended, ok := events[max(0, len(events)-1)].(journal.StepEnded); ok {
		finished.Outcome = ended.Outcome
	}
	run.Note(w.t.Context(), finished)
}

// get returns a page.
func (w *world) get(address string) string {
	w.t.Helper()
	page, _ := w.answer(address)
	return page
}

// answer returns a page with its headers.
func (w *world) answer(address string) (string, http.Header) {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, Path+address, nil))
	if answer.Code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", address, answer.Code, answer.Body)
	}
	return answer.Body.String(), answer.Header()
}

// troubled returns a world with objects in all states.
func troubled(t testing.TB) *world {
	w := newWorld(t)
	w.put("fine", "", "")
	for i := range 12 {
		w.put(fmt.Sprintf("db-%d", i), "SecretNotFound", "Secret shop/password does not exist")
	}
	w.put("odd", "QuotaExceeded", "<script>alert(1)</script> \u202e 3 of 10")
	start := journal.Cause{Kind: journal.CauseStart}
	w.reconcile(database("db-0"), start, journal.ResultWaiting,
		journal.StepEnded{Step: "ReadPassword", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{{For: "Secret shop/password"}}}},
		journal.StepSkipped{Step: "Create", After: "ReadPassword"},
	)
	w.reconcile(database("odd"), start, journal.ResultFailed,
		journal.Wrote{Step: "Create", Verb: "create", Object: journal.Object{Kind: "Service", Namespace: "shop", Name: "odd"}, Fields: []string{".spec.ports"}},
		journal.StepEnded{Step: "Create", Phase: journal.PhaseDo, Outcome: journal.Outcome{Err: errors.New("<b>quota</b>"), Class: "Quota", Remedy: "ask for more"}},
	)
	return w
}

// Each page says what it is about, and what objects say is text in it.
func TestPages(t *testing.T) {
	w := troubled(t)
	for address, wants := range map[string][]string{
		"":                        {"14 in all", "12", "SecretNotFound: Secret shop/password does not exist", "<strong>7</strong> in the queue", "1</strong> failed"},
		"objects":                 {"12 waiting", "11 not ready", "all 12", "1 failing", "1 ready", "shop"},
		"objects?q=PASSWORD+db-1": {"3 of 14 objects", "db-10"},
		"objects?state=ready":     {"1 of 14 objects", "fine"},
		"object?group=example.com&kind=Database&namespace=shop&name=db-0": {
			"ReadPassword waits for Secret shop/password. Create it", "not reached: ReadPassword did not pass", "SecretNotFound", "the first reconcile in this process",
		},
		"timeline?group=example.com&kind=Database&namespace=shop&name=odd": {"create Service shop/odd (.spec.ports)", "&lt;b&gt;quota&lt;/b&gt;", "ask for more", "failed"},
		"timeline?kind=Database&name=unknown":                              {"has not been reconciled lately"},
	} {
		page := w.get(address)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%q lacks %q:\n%s", address, want, page)
			}
		}
		for _, never := range []string{"<script>a", "<b>quota", "canary", "\u202e", "problem", "style=", "onclick"} {
			if strings.Contains(page, never) {
				t.Errorf("%q has %q:\n%s", address, never, page)
			}
		}
	}
}

// An object that is ready without a condition Ready gets no advice, and no color for what its
// conditions may mean.
func TestForeignObject(t *testing.T) {
	w := newWorld(t)
	w.put("foreign", "", "")
	key := types.NamespacedName{Namespace: "shop", Name: "foreign"}
	w.objects[key].Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Available", "status": "True", "reason": "Fine"}, map[string]any{"type": "Progressing", "status": "False", "reason": "Idle"},
	}}
	page := w.get("object?group=example.com&kind=Database&namespace=shop&name=foreign")
	for text, has := range map[string]bool{
		"✓</b> ready": true, "What to do": false, `<dt>Progressing</dt><dd class="faded status">`: true, `<dt>Available</dt><dd class="good status">`: true,
	} {
		if strings.Contains(page, text) != has {
			t.Errorf("%q: want %v in the page:\n%s", text, has, page)
		}
	}
}

// Wrong addresses say what is right, and everything has the headers that protect it.
func TestAddresses(t *testing.T) {
	w := troubled(t)
	for _, test := range []struct {
		method, address, want string
		code                  int
	}{
		{http.MethodPost, "objects", "only GET", http.StatusMethodNotAllowed},
		{http.MethodGet, "secrets", "the pages are", http.StatusNotFound},
		{http.MethodGet, "object", "names no object", http.StatusBadRequest},
		{http.MethodGet, "page.css", "--back", http.StatusOK},
		{http.MethodGet, "page.js", "EventSource", http.StatusOK},
	} {
		answer := httptest.NewRecorder()
		w.server.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), test.method, Path+test.address, nil))
		if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.want) {
			t.Errorf("%s %s: %d %s", test.method, test.address, answer.Code, answer.Body)
		}
		if policy := answer.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: the policy is %q", test.address, policy)
		}
	}
}

// A viewer applies patches, as the script does.
type viewer struct {
	t      *testing.T
	lines  *bufio.Scanner
	html   map[string]string
	within map[string][]string
	sent   int // elements of the last patch
}

func (w *world) follow(t *testing.T, address string) *viewer {
	server := httptest.NewServer(w.server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(func() { cancel(); server.Close() })
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+Path+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return newViewer(t, response.Body)
}

func newViewer(t *testing.T, from io.Reader) *viewer {
	c := &viewer{t: t, lines: bufio.NewScanner(from), html: map[string]string{}, within: map[string][]string{}}
	c.lines.Buffer(nil, 4<<20)
	return c
}

// next applies a patch, and reports false if there is none.
func (c *viewer) next() bool {
	c.t.Helper()
	for c.lines.Scan() {
		data, ok := strings.CutPrefix(c.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var p patch
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			c.t.Fatal(err)
		}
		c.sent = len(p.Set)
		for _, e := range p.Set {
			c.html[e.ID] = e.HTML
		}
		for _, o := range p.Order {
			c.within[o.ID] = o.Within
		}
		return true
	}
	return false
}

// until applies patches until the page, in its order, contains a text, or lacks it.
func (c *viewer) until(want string, has bool) string {
	c.t.Helper()
	var page string
	for c.next() {
		if page = c.page("content"); strings.Contains(page, want) == has {
			return page
		}
	}
	c.t.Fatalf("want %q: %v, in the page:\n%s", want, has, page)
	return ""
}

func (c *viewer) page(id string) string {
	var text strings.Builder
	text.WriteString(c.html[id])
	for _, inner := range c.within[id] {
		text.WriteString(c.page(inner))
	}
	return text.String()
}

// A stream sends what changes, and nothing else.
func TestStream(t *testing.T) {
	w := troubled(t)
	c := w.follow(t, "objects?stream=1")
	c.until("<span>12 waiting", true)
	w.put("db-3", "", "")
	c.until("<span>11 waiting", true)
	if c.sent > 8 { // a row, the heads of two groups, the chips, and the count
		t.Errorf("%d elements were sent for one object", c.sent)
	}
	w.put("young", none, "")
	c.until("NotReconciled", true)
	w.remove("young")
	c.until("NotReconciled", false)
	w.remove("odd")
	c.until("failing</a>", false)
	w.put("new", "SecretNotFound", "Secret shop/password does not exist")
	c.until("<span>12 waiting", true)
	w.reconcile(database("new"), journal.Cause{Kind: journal.CauseOwnChange}, journal.ResultWaiting)
	c.until("</b> 2 waiting</a>", true) // the chip
}

// Who has the page already is sent nothing before it changes.
func TestStreamOfWhatIsThere(t *testing.T) {
	w := troubled(t)
	page := w.get("objects")
	_, rest, _ := strings.Cut(page, `data-version="`)
	version, _, _ := strings.Cut(rest, `"`)
	c := w.follow(t, "objects?stream=1&version="+version)
	if !c.lines.Scan() || c.lines.Text() != ": nothing has changed" {
		t.Fatalf("the stream begins with %q", c.lines.Text())
	}
}

// The table follows objects while there are viewers, and not afterwards.
func TestTableEndsWithItsViewers(t *testing.T) {
	w := troubled(t)
	w.server.view()
	if len(w.handlers) != 1 || w.activity.table.Load() == nil {
		t.Fatalf("%d handlers with a viewer", len(w.handlers))
	}
	w.server.leave()
	if len(w.handlers) != 0 || w.activity.table.Load() != nil {
		t.Errorf("%d handlers without a viewer", len(w.handlers))
	}
}

// A kind that can't be followed is said to be missing, and tried again.
func TestKindThatCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("fine", "", "")
		w.refuse = errors.New("databases.example.com is forbidden")
		if page := w.get("objects"); !strings.Contains(page, "Objects of a kind are missing: Database.example.com: databases.example.com is forbidden") {
			t.Errorf("the page does not say what is missing:\n%s", page)
		}
		w.refuse = nil
		time.Sleep(retryFollow)
		if page := w.get("objects"); !strings.Contains(page, "1 ready") || strings.Contains(page, "missing") {
			t.Errorf("the kind is not tried again:\n%s", page)
		}
		time.Sleep(2 * linger) // the table ends
	})
}

// Without a viewer, an event costs nothing but the count of a reconcile.
func TestCostWithoutAViewer(t *testing.T) {
	a := NewActivity()
	object := database("a")
	started := journal.Entry{Time: time.Now(), Controller: "database", Object: object, Event: journal.Started{}}
	finished := journal.Entry{Time: time.Now(), Controller: "database", Object: object, Event: journal.Finished{Result: journal.ResultDone}}
	a.Observe(t.Context(), finished)
	if n := testing.AllocsPerRun(100, func() { a.Observe(t.Context(), started); a.Observe(t.Context(), finished) }); n > 0 {
		t.Errorf("%v allocations for a reconcile", n)
	}
}

// The plot of a controller has the minutes of the last hour; older ones are forgotten.
func TestPlots(t *testing.T) {
	a, now := NewActivity(), time.Now()
	at := func(ago time.Duration, name string, took time.Duration, result journal.Result) {
		a.Observe(t.Context(), journal.Entry{Time: now.Add(-ago), Controller: "database", Object: database(name), Event: journal.Finished{Result: result, Duration: took}})
	}
	at(2*time.Hour, "old", time.Hour, journal.ResultFailed)
	for i := range 50 {
		at(time.Minute, fmt.Sprint("db-", i), time.Duration(i)*time.Millisecond, journal.ResultDone)
	}
	for range 5 {
		at(0, "often", time.Millisecond, journal.ResultFailed)
	}
	p := a.plots(now)[0]
	if p.Reconciles[minutes-1] != 5 || p.Failed[minutes-1] != 5 || p.Reconciles[minutes-2] != 50 || p.Failed[0] != 0 {
		t.Errorf("the counts are %v, failed %v", p.Reconciles, p.Failed)
	}
	if len(p.Slowest) != mostSlowest || p.Slowest[0].object.Name != "db-49" {
		t.Errorf("the slowest are %v", p.Slowest)
	}
	if len(p.Frequent) != 1 || p.Frequent[0].object.Name != "often" || p.Frequent[0].surely != 5 {
		t.Errorf("the most frequent are %v", p.Frequent)
	}
}
