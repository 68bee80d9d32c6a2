// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

var group = schema.GroupVersion{Group: "example.com", Version: "v1"}

// A Database is the kind that is explained.
type Database = testkind.Object[map[string]string, DatabaseStatus]

type DatabaseStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type request = step.Request[*Database]

// A scene is a cluster with one Database shop/db and its operator, whose events a ring keeps.
type scene struct {
	t      *testing.T
	steps  []step.Step[*Database]
	client client.Client
	engine *step.Engine[*Database]
	ring   *journal.Ring
	refuse error // what patches are answered with
}

// newScene returns a scene before the Database exists. Call it in a synctest bubble.
func newScene(t *testing.T, steps ...step.Step[*Database]) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(group.WithKind("Database"), &Database{})
	metav1.AddToGroupVersion(scheme, group)
	must(t, corev1.AddToScheme(scheme))
	s := &scene{t: t, steps: steps}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for _, kind := range []string{"ConfigMap", "Secret", "Pod", "Service"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithStatusSubresource(&Database{}).WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if s.refuse != nil {
				return s.refuse
			}
			return c.Patch(ctx, obj, patch, opts...)
		}}).Build()
	s.start()
	return s
}

// start starts a new process of the operator, which knows nothing of the one before.
func (s *scene) start() {
	s.t.Helper()
	s.ring = journal.NewRing(journal.RingOptions{})
	backoff := failure.Backoff{Initial: 8 * time.Second, Max: 8 * time.Second} // the jitter is less than a second
	options := step.Options[*Database]{
		Name: "database", Client: s.client, APIReader: s.client, Observers: []journal.Observer{s.ring},
		Failures: failure.Table{Backoffs: map[failure.Class]failure.Backoff{failure.ClassForbidden: backoff, failure.ClassTerminal: backoff, failure.ClassTransient: backoff}},
	}
	engine, err := step.New(options, s.steps...)
	must(s.t, err)
	s.engine = engine
	if db := s.get(); db != nil {
		engine.EventFilter().Create(event.CreateEvent{Object: db, IsInInitialList: true})
	}
}

// settle reconciles until nothing is in the queue.
func (s *scene) settle() {
	s.t.Helper()
	s.reconcile()
	for len(s.report().Controllers[0].Queued) > 0 {
		s.reconcile()
	}
}

func (s *scene) ctx() context.Context { return s.t.Context() }

// create creates shop/db, with changes, and notifies the operator.
func (s *scene) create(change ...func(*Database)) {
	s.t.Helper()
	db := &Database{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", UID: "1", Generation: 1, CreationTimestamp: metav1.Now()}}
	for _, f := range change {
		f(db)
	}
	must(s.t, s.client.Create(s.ctx(), db))
	s.engine.EventFilter().Create(event.CreateEvent{Object: db})
}

// get returns shop/db, nil if it does not exist.
func (s *scene) get() *Database {
	s.t.Helper()
	db := &Database{}
	err := s.client.Get(s.ctx(), client.ObjectKey{Namespace: "shop", Name: "db"}, db)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(s.t, err)
	return db
}

// update changes shop/db and notifies the operator.
func (s *scene) update(change func(*Database)) {
	s.t.Helper()
	db := s.get()
	old := s.get()
	change(db)
	must(s.t, s.client.Update(s.ctx(), db))
	s.engine.EventFilter().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: db})
}

// delete deletes shop/db and notifies the operator.
func (s *scene) delete() {
	s.t.Helper()
	must(s.t, s.client.Delete(s.ctx(), s.get()))
	if db := s.get(); db != nil {
		s.engine.EventFilter().Update(event.UpdateEvent{ObjectNew: db})
	}
}

// reconcile runs a reconcile, and notifies the operator of its writes to the object.
func (s *scene) reconcile() reconcile.Result {
	s.t.Helper()
	before := s.get()
	result, _ := s.engine.Reconcile(s.ctx(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "db"}}) //nolint:errcheck // the journal has it
	switch after := s.get(); {
	case before != nil && after == nil:
		s.engine.EventFilter().Delete(event.DeleteEvent{Object: before})
	case before != nil && after.ResourceVersion != before.ResourceVersion:
		s.engine.EventFilter().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	return result
}

// report asks the operator, as the command does.
func (s *scene) report() *explanation.Report {
	s.t.Helper()
	server := httptest.NewRecorder()
	query := url.Values{"group": {group.Group}, "kind": {"Database"}, "namespace": {"shop"}, "name": {"db"}}
	explanation.Handler(s.ring).ServeHTTP(server, httptest.NewRequestWithContext(s.ctx(), http.MethodGet, explanation.Path+"?"+query.Encode(), nil))
	if server.Code != http.StatusOK {
		s.t.Fatalf("%d: %s", server.Code, server.Body)
	}
	report := &explanation.Report{}
	must(s.t, json.Unmarshal(server.Body.Bytes(), report))
	return report
}

// explain returns what is known about shop/db now.
func (s *scene) explain() *explanation.Explanation {
	s.t.Helper()
	x := &explanation.Explanation{Resource: "databases.example.com", Report: s.report(), Now: time.Now()}
	if db := s.get(); db != nil {
		db.SetGroupVersionKind(group.WithKind("Database"))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(db)
		must(s.t, err)
		x.Object = &unstructured.Unstructured{Object: content}
	}
	return x
}

// The operator can be asked while it reconciles.
func TestReportDuringReconciles(t *testing.T) {
	s := newScene(t, readPassword(false), done("CreateDatabase"))
	s.create()
	s.reconcile()
	stop := make(chan struct{})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
				if r := explanation.FromEntries(database, s.ring.Entries(database)); len(r.Controllers) != 1 {
					t.Errorf("it knows of %d controllers", len(r.Controllers))
				}
			}
		}
	}()
	for range 100 {
		s.reconcile()
	}
	close(stop)
	<-asked
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parts is a step that keeps a Secret, a ConfigMap, a Pod, and a Service that waits for it.
func parts() step.Step[*Database] {
	return apply.Children("Parts", func(_ context.Context, _ *request, want *apply.Set) error {
		named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
		want.Add(&corev1.Secret{ObjectMeta: named("password")}, &corev1.ConfigMap{ObjectMeta: named("settings")})
		want.Add(&corev1.Pod{ObjectMeta: named("db-0"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "postgres:18"}}}})
		want.Add(&corev1.Service{ObjectMeta: named("db"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}}}, apply.Wave(1))
		return nil
	}, apply.Owns(&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Pod{}, &corev1.Service{}))
}
