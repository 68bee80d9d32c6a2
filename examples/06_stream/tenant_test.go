// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/step"
)

// A tenancy is an operator of Roles and Databases, a user with objects in one namespace, and a
// tenant who may edit everything in another one, and nothing else.
type tenancy struct {
	*exampletest.Cluster // as an administrator has it; its namespace is that of the victim
	*testing.T
	db     *sql.DB
	visits *visits
	stores bool
	kind   string

	system, tenant string        // namespaces: of the operator with its claims, and of the tenant
	as             client.Client // as the tenant has it
	config         *rest.Config
}

// startTenancy prepares the namespaces. Nothing runs yet.
func startTenancy(t *testing.T, db *sql.DB, kind string, stores bool) *tenancy {
	t.Helper()
	scheme := testkind.Scheme(roleKind, databaseKind)
	y := &tenancy{T: t, db: db, stores: stores, kind: kind, visits: &visits{all: map[string]int{}}, Cluster: exampletest.NewCluster(t, &shared, scheme)}
	y.config = shared.ForTest(t).Config()
	y.Apply(t, testkind.Files(t, roleKind, databaseKind)...)
	y.system, y.tenant = y.Namespace+"-system", y.Namespace+"-tenant"
	for _, name := range []string{y.system, y.tenant} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		exampletest.Must(t, y.Create(t.Context(), namespace))
		t.Cleanup(func() { exampletest.Must(t, y.Cluster.Delete(context.WithoutCancel(t.Context()), namespace)) })
	}
	objects := []string{"roles", "databases", "roles/status", "databases/status", "roles/finalizers", "databases/finalizers"}
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	y.grant("", "operates", []rbacv1.PolicyRule{{APIGroups: []string{testkind.Version.Group}, Resources: objects, Verbs: all}}, y.system, "everywhere")
	y.grant(y.tenant, "operates", []rbacv1.PolicyRule{{APIGroups: []string{testkind.Version.Group}, Resources: objects, Verbs: all}}, y.system, "here")
	for _, account := range []string{"everywhere", "here"} {
		y.grant("", "uses-"+account, []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "patch"}},
			{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}, y.system, account)
		y.grant(y.system, "claims-"+account, []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "create", "update", "delete"}},
		}, y.system, account)
	}
	y.admitTenant(objects, all)
	return y
}

// grant lets a service account do something, in one namespace or everywhere.
func (y *tenancy) grant(namespace, name string, rules []rbacv1.PolicyRule, system, account string) {
	y.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: y.system + "-" + name}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: account}}
	objects := []client.Object{&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}}
	if namespace != "" {
		ref.Kind = "Role"
		objects = []client.Object{&rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}}
	}
	for _, obj := range objects {
		exampletest.Must(y, y.Create(y.Context(), obj))
		y.Cleanup(func() {
			exampletest.Must(y, client.IgnoreNotFound(y.Cluster.Delete(context.WithoutCancel(y.Context()), obj)))
		})
	}
}

// admitTenant binds the tenant to the ClusterRole edit, to which the kinds are added as projects do
// it.
func (y *tenancy) admitTenant(objects, verbs []string) {
	y.Helper()
	editor := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "test-editor", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{testkind.Version.Group}, Resources: objects, Verbs: verbs}},
	}
	exampletest.Must(y, client.IgnoreAlreadyExists(y.Create(y.Context(), editor)))
	exampletest.Must(y, y.Create(y.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: y.tenant, Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: y.tenant}},
	}))
	config := rest.CopyConfig(y.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: y.tenant, Groups: []string{"system:authenticated"}}
	as, err := client.New(config, client.Options{Scheme: y.Scheme()})
	exampletest.Must(y, err)
	y.as = as
	await(y.T, "the tenant to be admitted", func() bool {
		return y.as.List(y.Context(), y.list(), client.InNamespace(y.tenant)) == nil
	})
}

func (y *tenancy) list() client.ObjectList {
	if y.kind == "Role" {
		return &testkind.List[roleSpec, testkind.Status]{}
	}
	return &testkind.List[databaseSpec, testkind.Status]{}
}

// operate starts the operator. One that is here sees the namespace of the tenant alone, and may
// read nothing else.
func (y *tenancy) operate(account string, workers int) (stop func()) {
	y.Helper()
	config := rest.CopyConfig(y.config)
	config.Impersonate.UserName = "system:serviceaccount:" + y.system + ":" + account
	_, options := y.Operator(y.T, "")
	options.Scheme, options.Cache = y.Scheme(), cache.Options{}
	if account == "here" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{y.tenant: {}}
	}
	mgr, err := ctrl.NewManager(config, options)
	exampletest.Must(y, err)
	if y.kind == "Role" {
		err = register(y, mgr, &Role{}, workers)
	} else {
		err = register(y, mgr, &Database{}, workers)
	}
	exampletest.Must(y, err)
	return exampletest.Run(y.T, mgr)
}

const namedPoll = 300 * time.Millisecond

func register[T client.Object](y *tenancy, mgr ctrl.Manager, kind T, workers int) error {
	connector := namer[T]{y.db, y.kind, y.stores, y.visits}
	engine, err := step.New(step.Options[T]{
		Name: "named", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("named"),
		Controller: controller.Options{MaxConcurrentReconciles: workers},
	}, external.New(y.kind, connector, external.Options[T]{
		Identity:    external.ByName(func(obj T) (string, error) { return specOf(obj).Name, nil }),
		StoresOwner: y.stores, ClaimNamespace: y.system, Poll: namedPoll, Busy: namedPoll,
		ConnectionSecret: func(obj T) string { return specOf(obj).Secret },
	}))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(kind))
}

// add creates an object as the tenant, or as the victim in the namespace of the victim.
func (y *tenancy) add(namespace, name, id string, annotations ...string) client.Object {
	y.Helper()
	obj := newNamed(y.kind, named{Name: id, Connections: 5, Secret: name})
	if namespace == y.tenant {
		obj = newNamed(y.kind, named{Name: id, Connections: 7, Secret: name})
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetAnnotations(pairs(annotations))
	exampletest.Must(y, y.of(obj).Create(y.Context(), obj))
	return obj
}

// of returns the client of the user of a namespace.
func (y *tenancy) of(obj client.Object) client.Client {
	if obj.GetNamespace() == y.tenant {
		return y.as
	}
	return y.WithWatch
}

func pairs(list []string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		all[list[i]] = list[i+1]
	}
	return all
}

// annotate sets annotations, and removes those with a value of "-".
func (y *tenancy) annotate(obj client.Object, list ...string) {
	y.Helper()
	var members []string
	for key, value := range pairs(list) {
		if value == "-" {
			members = append(members, fmt.Sprintf("%q:null", key))
			continue
		}
		members = append(members, fmt.Sprintf("%q:%q", key, value))
	}
	y.change(obj, `{"metadata":{"annotations":{`+strings.Join(members, ",")+`}}}`)
}

func (y *tenancy) change(obj client.Object, patch string) {
	y.Helper()
	exampletest.Must(y, y.of(obj).Patch(y.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// visited waits until an object was reconciled three times with PostgreSQL. Two such begin after
// what was written before.
func (y *tenancy) visited(obj client.Object) {
	y.Helper()
	key := y.kind + " " + client.ObjectKeyFromObject(obj).String()
	before := y.visits.of(key)
	await(y.T, "reconciles of "+key, func() bool { return y.visits.of(key) >= before+3 })
}

// ready returns the status and the message of the condition Ready.
func (y *tenancy) ready(obj client.Object) string {
	y.Helper()
	now := newNamed(y.kind, named{})
	if err := y.Get(y.Context(), client.ObjectKeyFromObject(obj), now); err != nil {
		return "gone"
	}
	conditions, err := condition.Of(now)
	exampletest.Must(y, err)
	c := meta.FindStatusCondition(conditions, condition.Ready)
	if c == nil || c.ObservedGeneration != now.GetGeneration() {
		return "unknown"
	}
	return fmt.Sprintf("%s: %s: %s", c.Status, c.Reason, c.Message)
}

func (y *tenancy) awaitReady(obj client.Object) {
	y.Helper()
	defer func() {
		if y.Failed() {
			y.Logf("%s is %s", client.ObjectKeyFromObject(obj), y.ready(obj))
		}
	}()
	await(y.T, obj.GetName()+" to be ready", func() bool { return strings.HasPrefix(y.ready(obj), "True") })
}

// refused waits until an object was reconciled, and fails if it is ready.
func (y *tenancy) refused(obj client.Object) {
	y.Helper()
	y.visited(obj)
	ready := y.ready(obj)
	if strings.HasPrefix(ready, "True") {
		y.Errorf("%s is %s", client.ObjectKeyFromObject(obj), ready)
	}
	y.Logf("%s is %s", client.ObjectKeyFromObject(obj), ready)
}

// deletes deletes an object, which must go.
func (y *tenancy) deletes(obj client.Object) {
	y.Helper()
	exampletest.Must(y, client.IgnoreNotFound(y.of(obj).Delete(y.Context(), obj)))
	defer func() {
		if y.Failed() {
			y.Logf("%s is %s", client.ObjectKeyFromObject(obj), y.ready(obj))
		}
	}()
	await(y.T, obj.GetName()+" to be gone", func() bool { return y.ready(obj) == "gone" })
}

// row returns what PostgreSQL has of a name.
func (y *tenancy) row(id string) string { y.Helper(); return rowOf(y.T, y.db, y.kind, id) }

// exec is done in PostgreSQL by others.
func (y *tenancy) exec(statement string) {
	y.Helper()
	_, err := y.db.ExecContext(y.Context(), statement)
	exampletest.Must(y, err)
}

// claimOf returns the claims of an object.
func (y *tenancy) claimsOf(obj client.Object) []coordinationv1.Lease {
	y.Helper()
	all := &coordinationv1.LeaseList{}
	exampletest.Must(y, y.List(y.Context(), all, client.InNamespace(y.system), client.MatchingLabels{"external.ctrlkit.dev/holder": string(obj.GetUID())}))
	return all.Items
}
