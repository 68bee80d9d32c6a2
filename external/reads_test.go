// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A credentialed connector connects with the credentials in a Secret, and records which.
type credentialed struct {
	*store
	scopes external.CredentialScopes
	used   *uses
}

// uses are the credentials that were used since they were taken last.
type uses struct {
	mu  sync.Mutex // for all
	all []string
}

func (u *uses) add(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, what)
}

func (u *uses) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.all
	u.all = nil
	return all
}

func (c credentialed) Connect(ctx context.Context, req *step.Request[*Silo]) (external.Client[*Silo], error) {
	secret, err := c.scopes.Get(ctx, req.Client, req.Object.Namespace)
	if err != nil {
		c.used.add("none")
		return nil, err
	}
	c.used.add(secret.Name + " " + string(secret.Data["token"]))
	return c.store.Connect(ctx, req)
}

func credentials(namespace, name, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"token": []byte(token)}}
}

// Whatever the Secrets are watched for: the credentials that Connect has read, or looked for, reconcile
// the object when they change, and others do not.
func TestChangedCredentials(t *testing.T) {
	for name, change := range map[string]func(o *external.Options[*Silo]){
		"reads": func(o *external.Options[*Silo]) { o.Reads = []client.Object{&corev1.Secret{}} },
		"published": func(o *external.Options[*Silo]) {
			o.ConnectionSecret = func(obj *Silo) string { return obj.Name + "-connection" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { changedCredentials(t, change) })
		})
	}
}

func changedCredentials(t *testing.T, change func(o *external.Options[*Silo])) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctrl.SetLogger(logr.Discard())
	server := apiserver.New(apiserver.Options{Now: time.Now})
	must(server.Install(silos.Definition()))
	user, err := client.New(server.Config(), client.Options{Scheme: siloScheme})
	must(err)
	for _, ns := range []string{"default", "system"} {
		must(client.IgnoreAlreadyExists(user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})))
	}
	must(user.Create(t.Context(), credentials("system", "all", "1")))
	must(user.Create(t.Context(), credentials("default", "another", "1")))
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme: siloScheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	must(err)
	used := &uses{}
	options := external.Options[*Silo]{
		Identity: byName(), Poll: 100 * time.Hour,
		Policy: policy.Defaults{IgnoreNamespaces: true},
	}
	change(&options)
	connector := credentialed{&store{all: map[string]*stored{}}, external.CredentialScopes{Namespace: "team", Operator: client.ObjectKey{Namespace: "system", Name: "all"}}, used}
	engine, err := step.New(step.Options[*Silo]{Name: "silos", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true},
		external.New("Silo", external.Connector[*Silo](connector), options))
	must(err)
	must(engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Silo{})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() { cancel(); must(<-ended) }()
	must(user.Create(t.Context(), &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "logs"}}))
	update := func(secret *corev1.Secret) func() error {
		return func() error { return user.Update(t.Context(), secret) }
	}
	for _, happens := range []struct {
		what string
		do   func() error
		want string // empty if nothing is done
	}{
		{"nothing", func() error { return nil }, "all 1"},
		{"the credentials change", update(credentials("system", "all", "2")), "all 2"},
		{"another Secret changes", update(credentials("default", "another", "2")), ""},
		{"a nearer one is created", func() error { return user.Create(t.Context(), credentials("default", "team", "3")) }, "team 3"},
		{"the wider one changes", update(credentials("system", "all", "4")), ""},
		{"the nearer one is deleted", func() error { return user.Delete(t.Context(), credentials("default", "team", "")) }, "all 4"},
		{"it is gone as well", func() error { return user.Delete(t.Context(), credentials("system", "all", "")) }, "none"},
		{"it comes again", func() error { return user.Create(t.Context(), credentials("system", "all", "5")) }, "all 5"},
	} {
		if happens.what == "it comes again" {
			time.Sleep(time.Hour) // in the backoff of the failures
		}
		synctest.Wait()
		used.take()
		must(happens.do())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if last := append([]string{""}, used.take()...); last[len(last)-1] != happens.want {
			t.Errorf("%s: connected with %q, want %q", happens.what, last[1:], happens.want)
		}
	}
}

// What Connect reads of a kind that nothing watches is reported, although the resource is polled, and
// also if Connect fails.
func TestUnwatchedCredentials(t *testing.T) {
	reads := func(o *external.Options[*Silo]) { o.Reads = []client.Object{&corev1.Secret{}} }
	for name, tt := range map[string]struct {
		change  func(o *external.Options[*Silo])
		watched []client.Object // by the program
		missing bool
		want    bool
	}{
		"nothing watches them":                {want: true},
		"nothing watches them, none is there": {missing: true, want: true},
		"declared":                            {change: reads},
		"declared, none is there":             {change: reads, missing: true},
		"the program watches them":            {watched: []client.Object{&corev1.Secret{}}},
		"published": {change: func(o *external.Options[*Silo]) {
			o.ConnectionSecret = func(obj *Silo) string { return obj.Name + "-connection" }
		}},
		"published elsewhere": {change: func(o *external.Options[*Silo]) {
			o.Publish = &external.Publisher[*Silo]{Targets: func(*Silo) []external.Target { return nil }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
				if !tt.missing {
					d.must(d.client.Create(t.Context(), credentials("default", "team", "1")))
				}
				used := &uses{}
				d.connector = credentialed{d.store, external.CredentialScopes{Namespace: "team"}, used}
				if tt.change != nil {
					tt.change(&d.options)
				}
				var found []string
				d.observers = append(d.observers, observerFunc(func(e journal.Entry) {
					if ev, ok := e.Event.(journal.Unwatched); ok {
						found = append(found, ev.Object.String())
					}
				}))
				d.restart()
				_, err := d.engine.Wire(append([]client.Object{&Silo{}}, tt.watched...)...)
				d.must(err)
				for range 4 {
					_, _ = d.reconcile()
				}
				if want := "Secret default/team"; slices.Contains(found, want) != tt.want || len(used.take()) == 0 {
					t.Errorf("reported are %q", found)
				}
			})
		})
	}
}

type observerFunc func(journal.Entry)

func (f observerFunc) Observe(_ context.Context, e journal.Entry) { f(e) }

// Where nothing can be created any more, the condition does not say to create the credentials.
func TestCredentialsOfATerminatingNamespace(t *testing.T) {
	for name, terminating := range map[string]bool{"terminating": true, "not terminating": false} {
		t.Run(name, func(t *testing.T) {
			inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
				used := &uses{}
				d.connector = credentialed{d.store, external.CredentialScopes{Namespace: "team"}, used}
				d.options.Policy = policy.Defaults{}
				d.restart()
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
				obj := &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs"}, Spec: SiloSpec{Size: "small", Region: "north"}}
				for _, o := range []client.Object{namespace, credentials("shop", "team", "1"), obj} {
					d.must(d.client.Create(t.Context(), o))
				}
				key := client.ObjectKeyFromObject(obj)
				for range 3 {
					_, err := d.reconcileOne(key)
					d.must(err)
				}
				d.must(d.client.Delete(t.Context(), obj))
				d.must(d.client.Delete(t.Context(), credentials("shop", "team", "")))
				if terminating {
					d.must(d.client.Delete(t.Context(), namespace))
				}
				if _, err := d.reconcileOne(key); err == nil {
					t.Error("no error")
				}
				d.must(d.client.Get(t.Context(), key, obj))
				got := meta.FindStatusCondition(obj.Status.Conditions, "Ready").Message
				const create, retain = "create one of them", "set the annotation policy.ctrlkit.dev/reclaim to retain"
				stays := fmt.Sprintf("namespace shop is being deleted, so that nothing can be created in it any more: without its credentials, the resource %s can only be left, and then stays", external.IDOf(obj))
				if strings.Contains(got, create) == terminating || strings.Contains(got, stays) != terminating || !strings.Contains(got, retain) {
					t.Errorf("Ready is %q", got)
				}
				metav1.SetMetaDataAnnotation(&obj.ObjectMeta, policy.ReclaimAnnotation, "retain")
				d.must(d.client.Update(t.Context(), obj))
				_, err := d.reconcileOne(key)
				d.must(err)
				if d.has(1); d.client.Get(t.Context(), key, obj) == nil {
					t.Error("the remedy does not end it")
				}
			})
		})
	}
}

// An engine that has another name waits for its own finalizer: the message says so, and what it says
// ends the wait.
func TestRenamedEngine(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.settle()
		rename := func(retired ...string) {
			e, err := step.New(step.Options[*Silo]{Name: "renamed", Client: d.client, APIReader: d.client, RetiredFinalizers: retired}, external.New("Silo", d.connector, d.options))
			d.must(err)
			d.engine = e
		}
		rename()
		d.settle()
		d.change(func(obj *Silo) { obj.Finalizers = append(obj.Finalizers, "example.com/backup") })
		d.delete()
		d.passes()
		d.has(1)
		d.expect("Ready", "False CleaningUp: cleaning up: waits for other controllers to remove their finalizers: test.example.com/silos, example.com/backup; "+
			`if an older version of this operator has put "test.example.com/silos" there, add it to step.Options.RetiredFinalizers; `+
			"if the controller of one is gone for good, take that finalizer off the object: what it stands for is then not cleaned up")
		if strings.Contains(d.conditions()["Ready"], policy.ReclaimAnnotation) {
			t.Error("it names a remedy that does not end the wait")
		}
		d.change(func(obj *Silo) { obj.Finalizers = obj.Finalizers[:len(obj.Finalizers)-1] }) // the other controller is done
		rename("test.example.com/silos")
		d.settle()
		d.gone()
	})
}

// Kubernetes' own finalizers end by themselves: there is no remedy to remove them.
func TestFinalizersOfTheGarbageCollector(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.settle()
		obj := d.get()
		child := credentials("default", "child", "")
		child.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: testkind.Version.String(), Kind: "Silo", Name: obj.Name, UID: obj.UID, BlockOwnerDeletion: new(true),
		}}
		child.Finalizers = []string{"example.com/kept"}
		d.must(d.client.Create(t.Context(), child))
		d.must(d.client.Delete(t.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		d.passes()
		if got := d.conditions()["Ready"]; !strings.HasSuffix(got, "to remove their finalizers: "+metav1.FinalizerDeleteDependents) {
			t.Errorf("Ready is %q", got)
		}
	})
}
