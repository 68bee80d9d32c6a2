// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package players

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// run lets players play for a ConfigMap and a Secret of the same name, for some time. It returns what
// has failed.
func run(t *testing.T, d time.Duration, prepare func(p *Players), set ...player.Player) (failed []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr := trace.New()
		server := apiserver.New(apiserver.Options{Now: time.Now, Seed: 1})
		c := cluster.New(server, tr, func() {})
		p, err := New(Options{Set: set, Cluster: c, Scheme: clientgoscheme.Scheme, Trace: tr, MaxCalls: MaxCalls, Failed: func(text string) { failed = append(failed, text) }})
		if err != nil {
			t.Fatal(err)
		}
		server.OnChange(func(change apiserver.Change) {
			c.Changed(change)
			p.Changed(change)
		})
		if prepare != nil {
			prepare(p)
		}
		for _, kind := range []string{"configmaps", "secrets"} {
			if _, err := c.Ask("user", "POST", "/api/v1/namespaces/default/"+kind, "application/json", []byte(`{"metadata":{"name":"x"}}`)); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(d); time.Now().Before(end); {
			if p.Step() {
				continue
			}
			due := p.Due()
			if due.IsZero() || due.After(end) {
				due = end
			}
			time.Sleep(time.Until(due))
		}
	})
	return failed
}

// A player is called once for several changes, after an error at growing intervals, and when the time
// for which it has asked is over.
func TestCalls(t *testing.T) {
	var start time.Time
	var at []time.Duration
	record := func(answer func(s *player.Stage) error) player.Player {
		return player.New(func(s *player.Stage, _ *corev1.ConfigMap) error {
			at = append(at, time.Since(start))
			return answer(s)
		})
	}
	for name, test := range map[string]struct {
		answer func(s *player.Stage) error
		want   string
	}{
		"satisfied": {func(*player.Stage) error { return nil }, "100ms"},
		"an error":  {func(*player.Stage) error { return errors.New("no") }, "100ms 1.1s 3.1s 7.1s"},
		"asks":      {func(s *player.Stage) error { s.After(time.Hour); s.After(4 * time.Second); return nil }, "100ms 4.1s 8.1s"},
	} {
		at = nil
		failed := run(t, 10*time.Second, func(*Players) { start = time.Now() }, record(test.answer))
		var got []string
		for _, d := range at {
			got = append(got, d.String())
		}
		if strings.Join(got, " ") != test.want || len(failed) > 0 {
			t.Errorf("%s: called at %v, want %s; %v", name, got, test.want, failed)
		}
	}
}

// A player that writes each time, and one that panics, fail the run.
func TestWrongPlayers(t *testing.T) {
	rings.Test(t, "takes a second")
	n := 0
	restless := player.New(func(s *player.Stage, cm *corev1.ConfigMap) error {
		n++
		cm.Data = map[string]string{"a": strings.Repeat("x", n%2+1)}
		return s.Update(cm)
	})
	if failed := run(t, time.Hour, nil, restless); len(failed) != 1 || !strings.Contains(failed[0], "writes at each call") {
		t.Errorf("got %v", failed)
	}
	panics := player.New(func(*player.Stage, *corev1.ConfigMap) error { panic("a bug") })
	if failed := run(t, time.Second, nil, panics); len(failed) != 1 || failed[0] != "the configmap-player panicked: a bug" {
		t.Errorf("got %v", failed)
	}
}

// A change of another object calls a player that watches it. A suspended one is called later.
func TestWatchingAndSuspension(t *testing.T) {
	calls := 0
	watching := player.New(func(*player.Stage, *corev1.ConfigMap) error { calls++; return nil }).
		Watching(&corev1.Secret{}, func(_ *player.Stage, secret client.Object) []client.ObjectKey {
			return []client.ObjectKey{client.ObjectKeyFromObject(secret)}
		})
	touch := player.New(func(s *player.Stage, secret *corev1.Secret) error {
		secret.Labels = map[string]string{"touched": "yes"}
		return s.Update(secret)
	})
	run(t, time.Minute, nil, watching, touch)
	if calls != 2 { // for the creation of both, and for the label
		t.Errorf("%d calls", calls)
	}
	calls = 0
	run(t, time.Minute, (*Players).Suspend, watching)
	if calls != 0 {
		t.Errorf("%d calls while suspended", calls)
	}
}

// A kind that the cluster does not know is a mistake of the workload.
func TestUnknownKind(t *testing.T) {
	type unknown struct{ corev1.ConfigMap }
	server := apiserver.New(apiserver.Options{})
	c := cluster.New(server, trace.New(), func() {})
	_, err := New(Options{Set: player.Set{player.New(func(*player.Stage, *unknown) error { return nil })}, Cluster: c, Scheme: clientgoscheme.Scheme})
	if err == nil || !strings.Contains(err.Error(), "the unknown-player") {
		t.Errorf("got %v", err)
	}
}
