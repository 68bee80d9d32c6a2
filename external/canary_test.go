// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// The passwords of each plan: that of the credentials, and that which the system gives to the users
// of a Depot. The Secret of a user has both, so that the simulator searches logs, Kubernetes events
// and status for them.
const (
	loginCanary = "canary-of-the-login"
	depotCanary = "canary-of-the-depot"
)

func canaries() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "credentials"},
		Data:       map[string][]byte{"password": []byte(loginCanary), "issued": []byte(depotCanary)},
	}
}

func hasCanary(text string) bool {
	return strings.Contains(text, loginCanary) || strings.Contains(text, depotCanary)
}

// A lookout logs what has a canary and should not, where the simulator finds it: the journal, and
// what is made of it.
type lookout struct {
	logger   logr.Logger
	ring     *journal.Ring
	registry *prometheus.Registry
	series   *metrics.Metrics
}

func newLookout(logger logr.Logger) (*lookout, error) {
	l := &lookout{logger: logger, ring: journal.NewRing(journal.RingOptions{}), registry: prometheus.NewRegistry()}
	var err error
	l.series, err = metrics.New(l.registry, metrics.Options{})
	return l, err
}

// Observe implements [journal.Observer].
func (l *lookout) Observe(ctx context.Context, e journal.Entry) {
	l.ring.Observe(ctx, e)
	l.series.Observe(ctx, e)
	text := fmt.Sprintf("%v %+v", e, e.Event)
	if called, ok := e.Event.(journal.Called); ok && called.Err != nil {
		text += fmt.Sprintf(" %+v", called.Err)
	}
	l.search("journal", text)
	if f, ok := e.Event.(journal.Finished); !ok || f.Result == journal.ResultDone {
		return // what is explained of an object, and counted, changes with each failure
	}
	w := httptest.NewRecorder()
	path := explanation.Path + "?group=test.example.com&kind=Depot&namespace=" + e.Object.Namespace + "&name=" + e.Object.Name
	explanation.Handler(l.ring).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	l.search("explanation", w.Body.String())
	families, err := l.registry.Gather()
	l.search("metrics", fmt.Sprint(families, err))
}

func (l *lookout) search(where, text string) {
	if hasCanary(text) {
		l.logger.Info("The "+where+" has a password", "text", text)
	}
}

// searchDepots ends a run in which an object has a canary, in whatever field.
func searchDepots(w *sim.World) {
	list := sim.List(w, &DepotList{}, "")
	if data, err := json.Marshal(list); err != nil || hasCanary(string(data)) {
		panic(fmt.Sprintf("a password is in an object: %s, %v", data, err))
	}
}

// A leak is where a wrong client writes a password.
type leak func(c depotClient, obj *Depot, seen *external.Observation, err error) error

// leaks are all, with the oracle that has to find each.
var leaks = map[string]struct {
	leak   leak
	oracle oracle.Name
}{
	"an error": {func(_ depotClient, _ *Depot, _ *external.Observation, err error) error {
		if err != nil {
			err = fmt.Errorf("logging in with %s: %w", loginCanary, err)
		}
		return err
	}, oracle.NoSecret},
	"a message": {func(_ depotClient, _ *Depot, seen *external.Observation, err error) error {
		seen.Unavailable = "log in with " + depotCanary
		return err
	}, oracle.NoSecret},
	"an annotation": {func(_ depotClient, obj *Depot, _ *external.Observation, err error) error {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "example.com/login", loginCanary)
		return err
	}, oracle.ScriptRuns},
	"the journal alone": {func(c depotClient, _ *Depot, _ *external.Observation, err error) error {
		return errors.Join(err, c.note(loginCanary))
	}, oracle.NoSecret},
}

// A client that leaks a password is found in the plans, wherever it leaks it.
func TestLeakedPasswordsAreFound(t *testing.T) {
	rings.Test(t, "simulates")
	for name, tt := range leaks {
		t.Run(name, func(t *testing.T) {
			class := classes()[0]
			class.leak, class.life = tt.leak, brief
			report := sim.Explore(t, class.workload(class.operator), sim.WithStopOn(tt.oracle))
			if report == nil {
				return
			}
			if !slices.ContainsFunc(report.Findings, func(f sim.Finding) bool { return f.Violation.Oracle == tt.oracle }) {
				t.Errorf("nothing was found in %d plans: %v", len(report.Plans), report.Findings)
			}
		})
	}
}

// login reads the credentials, and waits for them.
func login(ctx context.Context, req *step.Request[*Depot]) error {
	_, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKeyFromObject(canaries()))
	return err
}
