// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Silo is the object of the tests of single reconciles.
type Silo = testkind.Object[SiloSpec, SiloStatus]

type SiloSpec struct {
	Size   string `json:"size,omitempty"`
	Region string `json:"region,omitempty"` // the system chooses one
}

type SiloStatus struct {
	policy.RequestStatus `json:",inline"`
	ObservedGeneration   int64              `json:"observedGeneration,omitempty"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
	Phase                string             `json:"phase,omitempty"`
}

var (
	silos      = testkind.Of[SiloSpec, SiloStatus]("Silo")
	siloScheme = testkind.Scheme(silos)
)

// secretText is the password of each silo.
const secretText = "hunter2-canary"

// A siloDesk is an API server in memory, a store, and an engine that reconciles one Silo
// without a controller.
type siloDesk struct {
	t         *testing.T
	client    client.Client
	store     *store
	connector external.Connector[*Silo]
	options   external.Options[*Silo]
	observers []journal.Observer // besides the ring

	skipUnchanged bool             // as step.Options.SkipUnchanged
	failures      failure.Table    // as step.Options.Failures
	other         step.Step[*Silo] // a further step that cleans up; nil without one
	engine        *step.Engine[*Silo]
	recorder      *events.FakeRecorder
	ring          *journal.Ring
	logger        logr.Logger
	reads         error // of the cache; nil if it works
	writes        error // of metadata; nil if they work
}

// A cached client is that of a desk whose cache may fail.
type cached struct {
	client.Client
	d *siloDesk
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if c.d.reads != nil {
		return c.d.reads
	}
	return c.Client.Get(ctx, key, obj, options...)
}

var siloKey = client.ObjectKey{Namespace: "default", Name: "logs"}

func (c cached) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, is := obj.(*Silo); is && c.d.writes != nil {
		return c.d.writes
	}
	return c.Client.Patch(ctx, obj, patch, options...)
}

// newSiloDesk returns a desk with a Silo.
func newSiloDesk(t *testing.T, identity external.Identity[*Silo]) *siloDesk {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := apiserver.New(apiserver.Options{})
	d := &siloDesk{t: t, store: &store{all: map[string]*stored{}}, recorder: events.NewFakeRecorder(1000), ring: journal.NewRing(journal.RingOptions{}), logger: logr.Discard()}
	d.must(server.Install(silos.Definition()))
	var err error
	d.client, err = client.New(server.Config(), client.Options{Scheme: siloScheme})
	d.must(err)
	d.must(client.IgnoreAlreadyExists(d.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})))
	d.connector = d.store
	d.options = external.Options[*Silo]{
		Identity:    identity,
		StoresOwner: true, Adopt: adoptAny,
		Policy: policy.Defaults{IgnoreNamespaces: true},
	}
	d.restart()
	d.another(siloKey.Name)
	return d
}

// another returns another Silo.
func (d *siloDesk) another(name string) *Silo {
	d.t.Helper()
	obj := &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: siloKey.Namespace, Name: name}, Spec: SiloSpec{Size: "small", Region: "north"}}
	d.must(d.client.Create(d.t.Context(), obj))
	return obj
}

// inDesk runs a test with a desk, in virtual time.
func inDesk(t *testing.T, identity external.Identity[*Silo], test func(t *testing.T, d *siloDesk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newSiloDesk(t, identity)) })
}

// onDesk does that in a subtest.
func onDesk(t *testing.T, name string, identity external.Identity[*Silo], test func(t *testing.T, d *siloDesk)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inDesk(t, identity, test) })
}

// restart replaces the operator, with the options and the connector as they are now.
func (d *siloDesk) restart() {
	d.t.Helper()
	steps := []step.Step[*Silo]{external.New("Silo", d.connector, d.options)}
	if d.other.Name != "" {
		steps = append(steps, d.other)
	}
	e, err := step.New(step.Options[*Silo]{
		Name: "silos", Client: cached{d.client, d}, APIReader: d.client, Recorder: d.recorder, Observers: append([]journal.Observer{d.ring}, d.observers...),
		SkipUnchanged: d.skipUnchanged, Failures: d.failures,
	}, steps...)
	d.must(err)
	d.engine = e
}

func (d *siloDesk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// get returns the Silo, nil if it is gone.
func (d *siloDesk) get() *Silo {
	d.t.Helper()
	obj := &Silo{}
	if err := d.client.Get(d.t.Context(), siloKey, obj); client.IgnoreNotFound(err) != nil {
		d.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return obj
}

// change changes the Silo as a user does.
func (d *siloDesk) change(change func(obj *Silo)) {
	d.t.Helper()
	obj := d.get()
	change(obj)
	d.must(d.client.Update(d.t.Context(), obj))
}

// annotate sets an annotation of the Silo.
func (d *siloDesk) annotate(key, value string) {
	d.t.Helper()
	d.change(func(obj *Silo) { metav1.SetMetaDataAnnotation(&obj.ObjectMeta, key, value) })
}

func (d *siloDesk) delete() {
	d.t.Helper()
	d.must(d.client.Delete(d.t.Context(), d.get()))
}

// reconcile reconciles the Silo once.
func (d *siloDesk) reconcile() (ctrl.Result, error) {
	d.t.Helper()
	return d.reconcileOne(siloKey)
}

func (d *siloDesk) reconcileOne(key client.ObjectKey) (ctrl.Result, error) {
	d.t.Helper()
	ctx := log.IntoContext(context.WithoutCancel(d.t.Context()), d.logger)
	result, err := d.engine.Reconcile(ctx, ctrl.Request{NamespacedName: key})
	if d.store.open != 0 {
		d.t.Fatalf("%d clients are open after the reconcile", d.store.open)
	}
	return result, err
}

// passes reconciles the Silo once, without an error.
func (d *siloDesk) passes() ctrl.Result {
	d.t.Helper()
	result, err := d.reconcile()
	d.must(err)
	return result
}

// passesTimes does that so many times, each when the result says.
func (d *siloDesk) passesTimes(n int) {
	d.t.Helper()
	for range n {
		time.Sleep(d.passes().RequeueAfter)
	}
}

// fails reconciles the Silo once, with an error.
func (d *siloDesk) fails() {
	d.t.Helper()
	if _, err := d.reconcile(); err == nil {
		d.t.Fatal("no error")
	}
}

// has checks how many silos the store has.
func (d *siloDesk) has(n int) {
	d.t.Helper()
	if len(d.store.all) != n {
		d.t.Errorf("the store has %v", d.store.ids())
	}
}

// gone checks that neither the Silo nor what it stands for is there.
func (d *siloDesk) gone() {
	d.t.Helper()
	if d.has(0); d.get() != nil {
		d.t.Error("the object is there")
	}
}

// settle reconciles until the version of the Silo does not change, and returns the last result.
func (d *siloDesk) settle() ctrl.Result {
	d.t.Helper()
	for range 10 {
		before := d.get()
		result := d.passes()
		if after := d.get(); after == nil || before != nil && after.ResourceVersion == before.ResourceVersion {
			return result
		}
	}
	d.t.Fatal("each reconcile writes")
	return ctrl.Result{}
}

// conditions returns the conditions of the Silo: "True Available: message".
func (d *siloDesk) conditions() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	for _, c := range d.get().Status.Conditions {
		all[c.Type] = strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
	}
	return all
}

// expect checks that a condition begins with a text.
func (d *siloDesk) expect(kind, begins string) {
	d.t.Helper()
	if got := d.conditions()[kind]; !strings.HasPrefix(got, begins) {
		d.t.Errorf("%s is %q, want %q", kind, got, begins)
	}
}

func adoptAny(*Silo, string, bool) bool { return true }

var siloRules = external.NameRules{Prefix: "ours-"}

func byName() external.Identity[*Silo] {
	return external.ByName(func(obj *Silo) (string, error) { return siloRules.NameOf(obj) })
}

// siloIdentities are all classes.
var siloIdentities = map[string]external.Identity[*Silo]{
	"name":    byName(),
	"token":   external.ByToken[*Silo](),
	"tag":     external.ByTag[*Silo](time.Minute),
	"nothing": external.ByNothing[*Silo](),
}
