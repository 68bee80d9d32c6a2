// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

// An outage is a system that is out for a time, and an API server that refuses events meanwhile.
type outage struct {
	mu       sync.Mutex // for all below
	out      bool
	all      map[string]bool
	tries    map[string]int // of steps that fail by turns
	calls    map[string]int // of the system, by object
	statuses map[string]int // writes of the status, by object
	events   map[string]int // requests that record one, by the object that it is about
}

func (o *outage) Connect(context.Context, *step.Request[*Silo]) (external.Client[*Silo], error) {
	return o, nil
}

func (o *outage) call(obj *Silo, do func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls[obj.Name]++
	if o.out {
		return errors.New("500: out of order")
	}
	do()
	return nil
}

func (o *outage) Observe(_ context.Context, obj *Silo, id string) (seen external.Observation, err error) {
	seen = external.Observation{State: external.Absent}
	err = o.call(obj, func() {
		if o.all[id] {
			seen = external.Observation{State: external.UpToDate, Owner: external.OwnerOf(obj)}
		}
	})
	return seen, err
}

func (o *outage) Create(_ context.Context, obj *Silo, creation external.Creation) (string, error) {
	return creation.Name, o.call(obj, func() { o.all[creation.Name] = true })
}

func (o *outage) Update(context.Context, *Silo, string) error { return errors.New("there is no drift") }
func (o *outage) Delete(context.Context, *Silo, string) error {
	return errors.New("nothing is deleted")
}

// eventOf matches the name of an event, which begins with that of its object.
var eventOf = regexp.MustCompile(`\b(s[0-9]+)\.[0-9a-f]+`)

// watch counts what the operator writes, and refuses events during the outage.
func (o *outage) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status"):
			o.mu.Lock()
			defer o.mu.Unlock()
			o.statuses[path.Base(path.Dir(r.URL.Path))]++
		case r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/events"):
			about := []byte(r.URL.Path)
			if r.Method == http.MethodPost {
				about, _ = io.ReadAll(r.Body) //nolint:errcheck // a request in memory
				r.Body = io.NopCloser(bytes.NewReader(about))
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.events[string(eventOf.FindSubmatch(about)[1])]++
			if o.out {
				return refusal(r), nil
			}
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refusal is the answer of an API server that refuses a request.
func refusal(r *http.Request) *http.Response {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), Request: r}
}

// besides are what else is wrong with an object, besides the outage, and how often its status is
// written after so many calls: what says the same is not written again.
var besides = []struct {
	what   string
	do     func(o *outage, req *step.Request[*Silo]) error
	writes func(calls int) int
}{
	{"nothing", func(*outage, *step.Request[*Silo]) error { return nil }, atMost(2)}, // the failure, and the wait
	{"failures by turns", func(o *outage, req *step.Request[*Silo]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.tries[req.Object.Name]++; o.tries[req.Object.Name]%2 == 0 {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "quotas"}, "small", errors.New("no quota"))
		}
		return apierrors.NewInternalError(errors.New("the quota is not known"))
	}, func(calls int) int { return calls }},
	{"a refused status", func(_ *outage, req *step.Request[*Silo]) error {
		req.Object.Status.Phase = "New"
		return nil
	}, func(calls int) int { return calls + 2 }}, // each try is refused
	{"a terminal failure", func(*outage, *step.Request[*Silo]) error {
		return failure.Mark(errors.New("the plan has no such size"), failure.WithClass(failure.ClassTerminal))
	}, atMost(2)},
}

func atMost(n int) func(int) int { return func(int) int { return n } }

// An outage of ten minutes costs, and ends, as docs/external.md and docs/steps.md say, whatever
// else is wrong with the objects: each is tried again within one pause, and before and after it
// polled, although another step of it fails.
func TestAnOutageOfTenMinutes(t *testing.T) {
	const objects = 200
	rings.Test(t, "takes seconds")
	synctest.Test(t, func(t *testing.T) {
		o := &outage{all: map[string]bool{}, tries: map[string]int{}, calls: map[string]int{}, statuses: map[string]int{}, events: map[string]int{}}
		definition := silos.Definition()
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"Old"`)}}}},
		}
		user := startSilos(t, siloOperator{
			objects: objects, workers: 10, connector: o, definition: definition, events: true, wrap: o.watch,
			beside: []step.Step[*Silo]{step.Step[*Silo]{Name: "Beside", Do: func(_ context.Context, req *step.Request[*Silo]) error {
				return besides[besideOf(req.Object.Name)].do(o, req)
			}}},
		})
		time.Sleep(2 * time.Minute)
		const pause, mostEvents = 30 * time.Second, 4 // two reasons, each as an event and as a series
		for _, phase := range []struct {
			what        string
			out         bool
			takes       time.Duration
			least, most int    // calls of each object
			available   string // the condition of each object, at the end
		}{
			{"before", false, 5 * time.Minute, 4, 8, "True "},
			{"the outage", true, 10 * time.Minute, 16, 5 + 23, "Unknown observe: 500: out of order"}, // five, and one in each pause
			{"one pause after it", false, pause * 11 / 10, 1, 2, "True "},
			{"later", false, 5 * time.Minute, 4, 8, "True "},
		} {
			o.begin(phase.out)
			time.Sleep(phase.takes)
			synctest.Wait()
			for n := range objects {
				name := fmt.Sprint("s", n)
				beside := besides[besideOf(name)]
				calls, writes, events := o.counts(name)
				obj := &Silo{}
				if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj); err != nil {
					t.Fatal(err)
				}
				if calls < phase.least || calls > phase.most || writes > beside.writes(calls) || events > mostEvents {
					t.Errorf("%s, %s, beside %s: %d calls, %d writes of the status, %d requests of events", phase.what, name, beside.what, calls, writes, events)
				}
				available, ready := meta.FindStatusCondition(obj.Status.Conditions, "Available"), meta.FindStatusCondition(obj.Status.Conditions, "Ready")
				if got := string(available.Status) + " " + available.Message; got != phase.available {
					t.Errorf("%s, %s, beside %s: Available is %s, want %s", phase.what, name, beside.what, got, phase.available)
				}
				if besideOf(name) == 0 && strings.Contains(ready.Message, "500: out of order") != phase.out { // else a failure comes before the wait
					t.Errorf("%s, %s, beside %s: Ready says %s", phase.what, name, beside.what, ready.Message)
				}
			}
		}
	})
}

// begin begins to count, and an outage or its end.
func (o *outage) begin(out bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out = out
	clear(o.calls)
	clear(o.statuses)
	clear(o.events)
}

func (o *outage) counts(name string) (calls, statuses, events int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[name], o.statuses[name], o.events[name]
}

// besideOf returns the index in besides of what is wrong with an object.
func besideOf(name string) int {
	n, _ := strconv.Atoi(name[1:]) //nolint:errcheck // see startSilos
	return n % len(besides)
}
