// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Database is what the details are of.
type Database = testkind.Object[Spec, testkind.Status]

// A Spec has the details, for the simulator.
type Spec struct {
	Secret string `json:"secret,omitempty"`
	Key    string `json:"key,omitempty"`
}

var databases = testkind.Of[Spec, testkind.Status]("Database")

// A world is an operator of Databases that publishes details.
type world struct {
	t       *testing.T
	ctx     context.Context
	client  client.WithWatch
	public  []string
	here    bool // no target is elsewhere
	targets []external.Target
	details external.Details
	engine  *step.Engine[*Database]
	writes  atomic.Int32
	log     bytes.Buffer
	hidden  string // a namespace that the cache does not have
}

func newWorld(t *testing.T, targets ...external.Target) *world {
	t.Helper()
	server := apiserver.New(apiserver.Options{Seed: 1})
	if err := server.Install(databases.Definition()); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: testkind.Scheme(databases)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, targets: targets, public: []string{"host"}}
	w.ctx = log.IntoContext(t.Context(), funcr.New(func(prefix, args string) { w.log.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 5}))
	w.create(&Database{ObjectMeta: metav1.ObjectMeta{Name: "db"}})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	w.restart()
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if _, cluster := obj.(*corev1.Namespace); !cluster {
		obj.SetNamespace("default")
	}
	if err := w.client.Create(w.ctx, obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) publisher() *external.Publisher[*Database] {
	targets := func(*Database) []external.Target { return slices.Clone(w.targets) }
	return &external.Publisher[*Database]{Targets: targets, Public: w.public, Elsewhere: !w.here}
}

// restart starts another process of the operator.
func (w *world) restart() {
	w.t.Helper()
	p := w.publisher()
	counting := interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Namespace != "" && key.Namespace == w.hidden {
				return errors.New("unknown namespace for the cache")
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes.Add(1)
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.writes.Add(1)
			return c.Delete(ctx, obj, opts...)
		},
	})
	options := step.Options[*Database]{Name: "databases", Client: counting, APIReader: w.client}
	if !w.here {
		options.Finalizer = "test.example.com/databases"
	}
	engine, err := step.New(options,
		p.Step("Connection"), step.Step[*Database]{Name: "Database", Do: func(ctx context.Context, req *step.Request[*Database]) error {
			return p.Publish(ctx, req, w.details)
		}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine = engine
}

// publish reconciles the Database until nothing is left to do, and returns the last error.
func (w *world) publish(values, once map[string]string) (err error) {
	w.t.Helper()
	w.details = external.Details{Values: bytesOf(values), Once: bytesOf(once)}
	for range 4 {
		_, err = w.engine.Reconcile(w.ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "db"}})
	}
	return err
}

func bytesOf(texts map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for key, text := range texts {
		all[key] = []byte(text)
	}
	return all
}

// published returns what is published: "Secret default/db: password=p".
func (w *world) published() string {
	w.t.Helper()
	var lines []string
	add := func(kind string, obj client.Object, pairs []string) {
		slices.Sort(pairs)
		lines = append(lines, fmt.Sprintf("%s %s/%s: %s", kind, obj.GetNamespace(), obj.GetName(), strings.Join(pairs, " ")))
	}
	secrets, maps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	if err := w.client.List(w.ctx, secrets); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.List(w.ctx, maps); err != nil {
		w.t.Fatal(err)
	}
	for i := range secrets.Items {
		var pairs []string
		for key, value := range secrets.Items[i].Data {
			pairs = append(pairs, key+"="+string(value))
		}
		add("Secret", &secrets.Items[i], pairs)
	}
	for i := range maps.Items {
		if maps.Items[i].Name == "kube-root-ca.crt" {
			continue
		}
		var pairs []string
		for key, value := range maps.Items[i].Data {
			pairs = append(pairs, key+"="+value)
		}
		add("ConfigMap", &maps.Items[i], pairs)
	}
	return strings.Join(lines, "\n")
}

func (w *world) expect(what string, err error, want ...string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	if got := w.published(); got != strings.Join(want, "\n") {
		w.t.Errorf("%s: published is\n%s\nwant\n%s", what, got, strings.Join(want, "\n"))
	}
}

var values = map[string]string{"host": "h", "user": "u", "password": "p4ss"}

func TestTargets(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "all"},
		external.Target{Secret: "dsn", Type: "example.com/dsn", Keys: map[string]string{"dsn": "db://{{.user}}:{{.password | urlquery}}@{{.host}}"}},
		external.Target{ConfigMap: "address", Keys: map[string]string{"address": "{{.host}}:5432"}})
	all := []string{"Secret default/all: host=h password=p4ss user=u", "Secret default/dsn: dsn=db://u:p4ss@h", "ConfigMap default/address: address=h:5432"}
	w.expect("the first time", w.publish(values, nil), all...)
	w.writes.Store(0)
	w.expect("again", w.publish(values, nil), all...)
	w.restart()
	w.expect("after a restart", w.publish(values, nil), all...)
	if n := w.writes.Load(); n != 0 {
		t.Errorf("%d writes without a change", n)
	}
	w.expect("nothing is known", w.publish(nil, nil), all...)
	w.expect("rotated", w.publish(map[string]string{"host": "h", "user": "u", "password": "n3w"}, nil),
		"Secret default/all: host=h password=n3w user=u", "Secret default/dsn: dsn=db://u:n3w@h", all[2])
	w.targets = w.targets[1:2]
	w.expect("two have left", w.publish(values, nil), all[1])
	if strings.Contains(w.log.String(), "p4ss") {
		t.Error("the password is in the log")
	}
}

// What is known once stays, also in another process, and under another name.
func TestOnce(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}}, external.Target{Secret: "b", Keys: map[string]string{"key": "{{.key}}"}})
	once := []string{"Secret default/a: dsn=u:k key=k", "Secret default/b: key=k"}
	w.expect("once", w.publish(values, map[string]string{"key": "k"}), once...)
	w.restart()
	w.expect("later", w.publish(values, nil), once...)
	w.targets[0].Secret = "c"
	w.restart()
	w.expect("renamed", w.publish(values, nil), "Secret default/b: key=k", "Secret default/c: dsn=u:k key=k")
	w.expect("rotated", w.publish(values, map[string]string{"key": "n"}), "Secret default/b: key=n", "Secret default/c: dsn=u:n key=n")
	w.expect("the system returns it again", w.publish(map[string]string{"key": "m", "user": "u"}, nil), "Secret default/b: key=m", "Secret default/c: dsn=u:m key=m")
}

// A chosen key that can't be made keeps its value, and all else is written.
func TestUnknownDetails(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"dsn": "{{.user}}:{{.password}}", "host": "{{.host}}"}})
	err := w.publish(map[string]string{"host": "h", "user": "u"}, nil)
	if err == nil || failure.Classify(err).Reason != "Unpublished" || !strings.Contains(err.Error(), "Secret default/a: key dsn needs password, which is not known") {
		t.Errorf("error %v", err)
	}
	w.expect("a part", nil, "Secret default/a: host=h")
	w.expect("all", w.publish(values, nil), "Secret default/a: dsn=u:p4ss host=h")
	if err := w.publish(map[string]string{"host": "i", "user": "u"}, nil); err == nil {
		t.Error("no error")
	}
	w.expect("forgotten", nil, "Secret default/a: dsn=u:p4ss host=i")
}

// Another namespace has to allow it. What is there goes with the object.
func TestElsewhere(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop", Keys: map[string]string{"key": "{{.key}}"}})
	consent := func(from string) {
		t.Helper()
		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"publish.ctrlkit.dev/from": from}}}
		if err := w.client.Update(w.ctx, shop); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []string{"", "other, defaulted", "defaul*"} {
		consent(from)
		err := w.publish(values, map[string]string{"key": "k"})
		if err == nil || failure.Classify(err).Reason != "WrongTarget" || w.published() != "" {
			t.Errorf("allowed by %q: %v, %s", from, err, w.published())
		}
	}
	consent("other, default")
	w.expect("allowed", w.publish(values, map[string]string{"key": "k"}), "Secret shop/a: key=k")
	w.restart()
	w.expect("later", w.publish(values, nil), "Secret shop/a: key=k")
	consent("other")
	if err := w.publish(values, map[string]string{"key": "n"}); err == nil {
		t.Error("no error after the consent was taken back")
	}
	w.expect("no longer allowed", nil, "Secret shop/a: key=k")
	if err := w.client.Delete(w.ctx, &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}); err != nil {
		t.Fatal(err)
	}
	w.expect("deleted", w.publish(values, nil))
	if err := w.client.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "db"}, &Database{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Database: %v", err)
	}
}

// Objects of others stay as they are, whatever they claim.
func TestOthers(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a"})
	db := &Database{}
	if err := w.client.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "db"}, db); err != nil {
		t.Fatal(err)
	}
	other := &Database{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	w.create(other)
	for name, references := range map[string][]metav1.OwnerReference{
		"a stranger's": nil, "a living object's": {*metav1.NewControllerRef(other, testkind.Version.WithKind("Database"))},
	} {
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: references, Annotations: map[string]string{"external.ctrlkit.dev/once": "x"}}, Data: map[string][]byte{"x": []byte("y")}}
		w.create(theirs)
		err := w.publish(values, map[string]string{"key": "k"})
		if err == nil || !strings.Contains(err.Error(), "Secret default/a exists") || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: %v", name, err)
		}
		w.expect(name, nil, "Secret default/a: x=y")
		if err := w.client.Delete(w.ctx, theirs); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("they are gone", w.publish(values, nil), "Secret default/a: host=h password=p4ss user=u")
	w.targets = append([]external.Target{{Secret: "0"}}, w.targets...)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "0", Annotations: map[string]string{"external.ctrlkit.dev/once": "x"}}, Data: map[string][]byte{"x": []byte("y")}})
	if err := w.publish(values, nil); err == nil {
		t.Error("the Secret of a stranger is taken")
	}
	w.expect("nothing of a stranger is published", nil, "Secret default/0: x=y", "Secret default/a: host=h password=p4ss user=u")
}

// A consent that changes wakes the objects that publish to the Namespace, and nothing else of it does.
func TestConsentIsWatched(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a"}, external.Target{Secret: "a", Namespace: "shop"})
	var of []step.Watch
	for _, watch := range w.publisher().Step("Connection").Watches() {
		if _, ok := watch.Object.(*corev1.Namespace); ok {
			of = append(of, watch)
		}
	}
	if len(of) != 1 {
		t.Fatalf("%d watches of Namespaces", len(of))
	}
	db := &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	if keys := of[0].NamedBy(db); len(keys) != 1 || keys[0].Name != "shop" {
		t.Errorf("it depends on %v", keys)
	}
	before, labeled := &corev1.Namespace{}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	allowing := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"publish.ctrlkit.dev/from": "default"}}}
	if of[0].Changed(before, labeled) || !of[0].Changed(before, allowing) || !of[0].Changed(allowing, before) || !of[0].Changed(nil, allowing) {
		t.Error("the wrong changes wake it")
	}
}

// The remedy says what allows it: a cluster-scoped object has no namespace to name.
func TestRemedyOfElsewhere(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"})
	p := w.publisher()
	p.Step("Connection")
	for own, want := range map[string]string{"": `to "*"`, "default": `to "default"`} {
		db := &Database{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "db"}}
		err := p.Publish(w.ctx, &step.Request[*Database]{Client: w.client, Object: db}, external.Details{Values: bytesOf(values)})
		if got := failure.Classify(err).Remedy; !strings.HasSuffix(got, want) {
			t.Errorf("from namespace %q: error %v with the remedy %q, want %s", own, err, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for says, target := range map[string]external.Target{
		"a target has the name of a Secret or of a ConfigMap":              {},
		"ConfigMap default/a has no keys":                                  {ConfigMap: "a"},
		"ConfigMap default/a has the type of a Secret":                     {ConfigMap: "a", Keys: map[string]string{"a": "b"}, Type: corev1.SecretTypeTLS},
		"ConfigMap default/a: key b needs password, which may not be in a": {ConfigMap: "a", Keys: map[string]string{"b": "{{.password}}"}},
		"Secret default/a: key b: template: b:1: unclosed action":          {Secret: "a", Keys: map[string]string{"b": "{{.x"}},
		"Secret default/a: key b: its template can't be executed":          {Secret: "a", Keys: map[string]string{"b": "{{index .password 99}}"}},
		"Secret nowhere/a: its Namespace does not allow it":                {Secret: "a", Namespace: "nowhere"},
	} {
		w := newWorld(t, target)
		err := w.publish(values, nil)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "p4ss") || failure.Classify(err).Class != failure.ClassTerminal {
			t.Errorf("got %v, want %s", err, says)
		}
		w.expect(says, nil)
	}
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"})
	w.here, w.public = true, nil
	w.restart()
	if err := w.publish(values, nil); err == nil || !strings.Contains(err.Error(), "in another namespace") {
		t.Errorf("not declared: %v", err)
	}
	w.targets = []external.Target{{ConfigMap: "a", Keys: map[string]string{"a": "b"}}}
	if err := w.publish(values, nil); err == nil || !strings.Contains(err.Error(), "ConfigMap default/a is not declared") {
		t.Errorf("not declared: %v", err)
	}
	p := w.publisher()
	if err := p.Publish(t.Context(), nil, external.Details{}); err == nil || !strings.Contains(err.Error(), "not in the engine") {
		t.Errorf("without a step: %v", err)
	}
	if err := (&external.Publisher[*Database]{}).Step("Connection").Err; err == nil {
		t.Error("without targets")
	}
}
