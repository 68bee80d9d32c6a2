// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package exampletest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/show/difference"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// A Planner compares what plans of an operator say with what it does.
type Planner struct {
	*testing.T
	cluster   *Cluster
	plane     *controlplane.ControlPlane
	arguments []string // of the operator

	mu       sync.Mutex     // guards requests
	requests map[string]int // of plans to the cluster, by method
}

// NewPlanner returns a planner for an operator that plantest.Main runs with arguments.
func NewPlanner(t *testing.T, c *Cluster, plane *controlplane.ControlPlane, arguments ...string) *Planner {
	t.Helper()
	if err := supervisor.CanIsolate(); err != nil {
		t.Skip(err)
	}
	return &Planner{T: t, cluster: c, plane: plane, arguments: arguments, requests: map[string]int{}}
}

// Change is a change that is planned and then made.
type Change struct {
	apply  *unstructured.Unstructured
	delete schema.GroupVersionResource
	name   string
}

// Applied is an object that is applied.
func Applied(obj *unstructured.Unstructured) Change { return Change{apply: obj} }

// Deleted is an object that is deleted.
func Deleted(resource schema.GroupVersionResource, name string) Change {
	return Change{delete: resource, name: name}
}

// Object returns an object in the namespace of the planner's cluster.
func (p *Planner) Object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: maps.Clone(content)}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(p.cluster.Namespace)
	obj.SetName(name)
	return obj
}

// Create creates objects.
func (p *Planner) Create(objects ...*unstructured.Unstructured) {
	p.Helper()
	for _, obj := range objects {
		Must(p, p.cluster.Add(p.Context(), obj.DeepCopy()))
	}
}

// Operate runs the operator until the test ends, and waits.
func (p *Planner) Operate(done func() bool) {
	p.Helper()
	p.Cleanup(plantest.Start(p, p.plane.Kubeconfig(), p.arguments...))
	p.eventually(done)
}

func (p *Planner) eventually(done func() bool) bool {
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// reader returns the configuration of a user who may read and nothing else, and the requests of
// which are counted.
func (p *Planner) reader() *rest.Config {
	p.Helper()
	config, err := p.plane.AddUser("reader")
	Must(p, err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "reader"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
	}
	Must(p, client.IgnoreAlreadyExists(p.cluster.Create(p.Context(), role)))
	Must(p, client.IgnoreAlreadyExists(p.cluster.Create(p.Context(), binding)))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{p, next} })
	return config
}

type counted struct {
	*Planner
	next http.RoundTripper
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.requests[r.Method]++
	c.mu.Unlock()
	return c.next.RoundTrip(r)
}

// plan returns the plan of changes, which a user makes who may only read.
func (p *Planner) plan(changes []Change) (*plan.Plan, error) {
	source, err := plan.NewCluster(p.reader())
	Must(p, err)
	o := plan.Options{
		Source: source, Operator: plantest.Program(p, p.arguments...), Namespace: p.cluster.Namespace, Supervisor: plantest.Supervisor(p),
		Quiet: 2 * time.Second, Timeout: time.Minute, Progress: func(string) {},
	}
	for _, c := range changes {
		if c.apply != nil {
			o.Change = append(o.Change, run.Manifest{File: "change.yaml", Number: len(o.Change) + 1, Object: c.apply})
		} else {
			o.Delete = append(o.Delete, plan.Object{Resource: c.delete, Namespace: p.cluster.Namespace, Name: c.name})
		}
	}
	return plan.For(p.Context(), o)
}

// make makes a change in the cluster itself.
func (p *Planner) make(c Change) error {
	if c.apply == nil {
		gvk, err := p.cluster.RESTMapper().KindFor(c.delete)
		if err != nil {
			return err
		}
		obj := p.Object(gvk.GroupVersion().String(), gvk.Kind, c.name, nil)
		return p.cluster.Delete(p.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	err := p.cluster.Get(p.Context(), client.ObjectKeyFromObject(c.apply), c.apply.DeepCopy())
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		return p.cluster.Create(p.Context(), c.apply.DeepCopy())
	}
	patch, err := json.Marshal(c.apply)
	if err != nil {
		return err
	}
	return p.cluster.WithWatch.Patch(p.Context(), c.apply.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
}

// Check plans changes, makes them, and compares: what the operator does is compared by field, and
// what other controllers do by kind, because their objects have names that are chosen. It returns
// the plan.
func (p *Planner) Check(resources []schema.GroupVersionResource, changes ...Change) *plan.Plan {
	p.Helper()
	planned, err := p.plan(changes)
	Must(p, err)
	own := slices.DeleteFunc(slices.Clone(planned.AtStart), func(c plan.Change) bool { return c.By != plan.Operator })
	if len(own) > 0 || planned.Incomplete() {
		p.Errorf("at its start, the operator does %v; not known is %q", own, planned.Unknown)
	}
	if p.requests[http.MethodGet] == 0 || len(p.requests) > 1 {
		p.Errorf("the cluster got the requests %v, want nothing but GET", p.requests)
	}
	want := described(planned.Changes)
	before := p.state(resources)
	for _, c := range changes {
		Must(p, p.make(c))
	}
	got := func() []string { return described(p.inNamespace(before.Until(p.state(resources)))) }
	var diff string
	p.eventually(func() bool {
		diff = missing("- ", want, got()) + missing("+ ", got(), want)
		return diff == ""
	})
	if diff != "" {
		p.Errorf("what happens is not what was planned (-planned +happened):\n%s", diff)
	}
	return planned
}

// CheckRefused checks that a plan fails as the change does.
func (p *Planner) CheckRefused(c Change) {
	p.Helper()
	_, planned := p.plan([]Change{c})
	made := p.make(c)
	if planned == nil || made == nil || !strings.HasSuffix(planned.Error(), made.Error()) {
		p.Errorf("the plan fails with %v, and the change with %v; want the same refusal", planned, made)
	}
}

func (p *Planner) state(resources []schema.GroupVersionResource) plan.State {
	source, err := plan.NewCluster(p.cluster.config)
	Must(p, err)
	state, err := plan.StateOf(p.Context(), source, resources)
	Must(p, err)
	return state
}

func (p *Planner) inNamespace(changes []plan.Change) []plan.Change {
	return slices.DeleteFunc(changes, func(c plan.Change) bool {
		return c.Namespace != p.cluster.Namespace && !strings.HasPrefix(c.Name, p.cluster.Namespace)
	})
}

// named are the kinds of which other controllers choose the names.
var named = map[string]bool{"ReplicaSet": true, "Pod": true, "EndpointSlice": true}

// described returns a line for each object and each field that changes, and for each number of
// objects with chosen names.
func described(changes []plan.Change) []string {
	var lines []string
	numbers := map[string]int{}
	for _, c := range changes {
		switch {
		case c.Kind == "Endpoints": // deprecated
			continue
		case named[c.Kind] && c.Action == plan.Replace:
			numbers["create "+c.Kind]++
			numbers["delete "+c.Kind]++
			continue
		case named[c.Kind]:
			numbers[string(c.Action)+" "+c.Kind]++
			continue
		}
		what := fmt.Sprintf("%s %s", c.Action, c)
		lines = append(lines, what)
		for _, f := range c.Fields {
			lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", what, f.Path, text(difference.Timeless(f.From)), text(difference.Timeless(f.To))))
		}
	}
	for what, n := range numbers {
		lines = append(lines, fmt.Sprintf("%d x %s", n, what))
	}
	slices.Sort(lines)
	return lines
}

// missing returns the lines that others do not have.
func missing(sign string, lines, others []string) string {
	text := ""
	for _, line := range lines {
		if !slices.Contains(others, line) {
			text += sign + line + "\n"
		}
	}
	return text
}

// setName matches the name of a ReplicaSet in a message. Its hash is another one in the copy.
var setName = regexp.MustCompile(`(ReplicaSet \\"[^"]*)-[a-z0-9]+\\"`)

// uid matches a UID in a value, such as in the note of a child: it is another one in the copy.
var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return setName.ReplaceAllString(uid.ReplaceAllString(string(data), "(uid)"), "$1-(hash)\\\"")
}
