// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ctrlkit/ctrlkit/journal"
)

// Path is where an operator serves the page, below the address of its metrics.
const Path = "/debug/ctrlkit/view/"

// UnknownHeader says of the page about an object that the server does not follow objects of its kind,
// and has nothing to say: another page may have.
const UnknownHeader = "Ctrlkit-Unknown"

// Objects is where a page gets the objects of the cluster. It is used concurrently.
type Objects interface {
	// Kinds are the kinds to list.
	Kinds() []schema.GroupKind
	// Follow calls a handler with all objects of a kind and their changes, until stop is called. Synced
	// reports whether the handler has been called with all that were there. The objects belong to the
	// caller of the handler.
	Follow(kind schema.GroupKind, handler func(schema.GroupVersionKind) toolscache.ResourceEventHandler) (stop func(), synced func() bool, err error)
	// Get returns an object that was followed, nil if it does not exist, with the name of its kind for
	// kubectl.
	Get(ctx context.Context, o journal.Object) (obj *unstructured.Unstructured, resource string, err error)
}

// Options are those of a Server.
type Options struct {
	// Name is what the page is about, in its title: the name of the process.
	Name string
	// Objects and Activity are needed.
	Objects  Objects
	Activity *Activity
	// Entries returns what a journal knows of an object, and Known which objects it knows, those with the
	// latest entry first. They are nil without a journal, and then NoJournal says why.
	Entries   func(journal.Object) []journal.Entry
	Known     func() []journal.Object
	NoJournal string
	// Queues returns the length of the queue of each controller by its name. It may be nil.
	Queues func() map[string]int
	// Elected reports whether the process reconciles. It may be nil.
	Elected func() bool
	// Done is closed when the process ends: streams end then.
	Done <-chan struct{}
	// Pace is the shortest time between two patches of a stream, by default a quarter of a second.
	Pace time.Duration
}

// A Server is the page as an [http.Handler], for all addresses below a path that ends in a slash.
type Server struct {
	options Options

	mu      sync.Mutex
	table   *table // nil without viewers
	viewers int
	streams int
	feeds   map[string]*feed // by their addresses
}

// New returns a Server.
func New(options Options) *Server {
	options.Pace = cmp.Or(options.Pace, 250*time.Millisecond)
	return &Server{options: options, feeds: map[string]*feed{}}
}

// linger is how long the table stays without a viewer, for the next page of the same one.
const linger = 30 * time.Second

// view returns the table, and what to call when the viewer leaves.
func (s *Server) view() (*table, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		s.table = newTable()
		s.seed(s.table)
		s.options.Activity.table.Store(s.table)
	}
	s.viewers++
	t := s.table
	for _, kind := range s.options.Objects.Kinds() {
		t.follow(s.options.Objects, kind)
	}
	return t, func() { time.AfterFunc(linger, s.leave) }
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers--; s.viewers > 0 {
		return
	}
	s.options.Activity.table.Store(nil)
	s.table.close()
	s.table = nil
}

// seed gives a new table the results of the last reconciles.
func (s *Server) seed(t *table) {
	if s.options.Known == nil {
		return
	}
	for _, o := range s.options.Known() {
		for _, r := range reconcilesOf(s.options.Entries(o)) {
			t.finished(o, lastRunOf(r.result, r.outcome))
		}
	}
}

// headers say that nothing but the page itself may be loaded or run, or show it in a frame, and
// that neither it nor its address is kept or passed on.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options": "nosniff",
	"Referrer-Policy":        "no-referrer",
	"Cache-Control":          "no-store",
}

// Protect sets the headers of a page, or of an answer in its place.
func Protect(w http.ResponseWriter) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Protect(w)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch name {
	case "page.css", "page.js", "favicon.svg":
		http.ServeFileFS(w, r, assets, "assets/"+name)
		return
	case SummaryPath:
		s.serveSummary(w, r)
		return
	}
	page, ok := pages[name]
	if !ok {
		http.Error(w, "there is no such page: the pages are overview, objects, object and timeline", http.StatusNotFound)
		return
	}
	q := r.URL.Query()
	if page.needsObject && objectOf(q).Name == "" {
		http.Error(w, "the address names no object: add ?kind=KIND&namespace=NAMESPACE&name=NAME", http.StatusBadRequest)
		return
	}
	t, leave := s.view()
	defer leave()
	f, part := s.join(name, q)
	defer part()
	v := &viewing{server: s, table: t, query: q, ctx: r.Context(), page: page}
	if o := objectOf(q); page.needsObject && !v.known(o) && (s.options.Entries == nil || len(s.options.Entries(o)) == 0) {
		w.Header().Set(UnknownHeader, "true")
	}
	if q.Get("stream") != "" {
		s.stream(w, v, f, q.Get("version"))
		return
	}
	s.settle(r.Context(), t)
	current := f.edition(v)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var content strings.Builder
	current.root.write(&content)
	_ = writePage(w, v, name, content.String(), current.version) // an error means that the viewer has gone
}

// settle waits a moment for the objects of a new table, so that the first page has them.
func (s *Server) settle(ctx context.Context, t *table) {
	deadline := time.Now().Add(500 * time.Millisecond)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if loading, _ := t.loading(); !loading {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A viewing is a page that is shown to one viewer.
type viewing struct {
	server *Server
	table  *table
	page   page
	query  url.Values
	ctx    context.Context //nolint:containedctx // of the request that it is about
	now    time.Time
}

// A page is one kind of address.
type page struct {
	title       string
	needsObject bool
	content     func(*viewing) block
	// every is how often the page changes without an event, because it says how long something lasts.
	every time.Duration
}

var pages map[string]page

func init() {
	pages = map[string]page{
		"":         {title: "Overview", content: (*viewing).overview, every: 15 * time.Second},
		"objects":  {title: "Objects", content: (*viewing).objects, every: time.Minute},
		"object":   {title: "Object", needsObject: true, content: (*viewing).object, every: 5 * time.Second},
		"timeline": {title: "Timeline", needsObject: true, content: (*viewing).timeline, every: 30 * time.Second},
	}
}

// objectOf returns the object that a query names.
func objectOf(q url.Values) journal.Object {
	return journal.Object{Group: q.Get("group"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
}

// queryOf is the reverse of objectOf.
func queryOf(o journal.Object) template.URL {
	q := url.Values{"kind": {o.Kind}, "name": {o.Name}}
	if o.Group != "" {
		q.Set("group", o.Group)
	}
	if o.Namespace != "" {
		q.Set("namespace", o.Namespace)
	}
	return encode(q)
}

// encode returns a query for an address in a template, which escapes it no more.
func encode(q url.Values) template.URL {
	return template.URL(q.Encode()) //nolint:gosec // Encode escapes what is not a letter or a digit
}
