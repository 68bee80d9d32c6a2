// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/players"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// theater is a cluster with players, without an operator.
type theater struct {
	*testing.T
	cluster *cluster.Cluster
	players *players.Players
	trace   *trace.Trace
	writes  int // of players
}

// play runs a test in virtual time.
func play(t *testing.T, set player.Set, script func(t *theater)) {
	t.Helper()
	if set == nil {
		set = player.Defaults()
	}
	synctest.Test(t, func(t *testing.T) {
		tr := trace.New()
		server := apiserver.New(apiserver.Options{Now: time.Now, Seed: 1})
		h := &theater{T: t, cluster: cluster.New(server, tr, func() {}), trace: tr}
		var err error
		h.players, err = players.New(players.Options{
			Set: set, Cluster: h.cluster, Scheme: clientgoscheme.Scheme, Trace: tr, MaxCalls: players.MaxCalls, Failed: func(text string) { t.Fatal(text) },
		})
		if err != nil {
			t.Fatal(err)
		}
		server.OnChange(func(c apiserver.Change) {
			h.cluster.Changed(c)
			h.players.Changed(c)
			if c.Actor != "user" && c.Actor != "server" {
				h.writes++
			}
		})
		script(h)
		if t.Failed() {
			t.Log("\n" + tr.String())
		}
	})
}

// pass lets virtual time pass.
func (t *theater) pass(d time.Duration) {
	for end := time.Now().Add(d); ; {
		for t.players.Step() || t.cluster.Server.Work() {
			continue
		}
		due := t.players.Due()
		if due.IsZero() || due.After(end) {
			time.Sleep(time.Until(end))
			return
		}
		time.Sleep(time.Until(due))
	}
}

// settle lets everything happen, and fails unless it comes to an end.
func (t *theater) settle() {
	t.Helper()
	t.pass(time.Minute)
	before := t.writes
	t.pass(time.Minute)
	if t.writes != before {
		t.Errorf("%d writes after a minute", t.writes-before)
	}
}

func (t *theater) path(obj client.Object) (collection, path string) {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	resource, _, err := t.cluster.Server.ResourceFor(gvk)
	if err != nil {
		t.Fatal(err)
	}
	collection = cluster.CollectionPath(resource, obj.GetNamespace())
	return collection, collection + "/" + obj.GetName()
}

func (t *theater) ask(method, path string, body any) []byte {
	t.Helper()
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body) //nolint:errcheck // an object of a test
	}
	answer, err := t.cluster.Ask("user", method, path, "application/json", data)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// create creates objects as a user.
func (t *theater) create(objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		gvk, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
		collection, _ := t.path(obj)
		t.ask(http.MethodPost, collection, content)
	}
}

func (t *theater) delete(obj client.Object) {
	t.Helper()
	_, path := t.path(obj)
	t.ask(http.MethodDelete, path, map[string]any{"propagationPolicy": "Background"})
}

// get returns the object of the name of another one.
func get[T client.Object](t *theater, obj T) T {
	t.Helper()
	_, path := t.path(obj)
	into := obj.DeepCopyObject().(T)
	if err := json.Unmarshal(t.ask(http.MethodGet, path, nil), into); err != nil {
		t.Fatal(err)
	}
	return into
}

// update changes an object, or its status, as another client.
func update[T client.Object](t *theater, obj T, change func(T)) {
	t.Helper()
	current := get(t, obj)
	change(current)
	_, path := t.path(obj)
	t.ask(http.MethodPut, path, current)
}

// list returns the objects of a kind in the namespace default.
func list[T any, P interface {
	*T
	client.Object
}](t *theater) []T {
	t.Helper()
	kind := P(new(T))
	kind.SetNamespace("default")
	collection, _ := t.path(kind)
	var into struct{ Items []T }
	if err := json.Unmarshal(t.ask(http.MethodGet, collection, nil), &into); err != nil {
		t.Fatal(err)
	}
	return into.Items
}
