// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/bench/operators"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/requests"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// quiet is the time without requests after which an operator counts as idle: longer than the
// latency of watches, and shorter than any timer of the operators.
const quiet = 700 * time.Millisecond

// The requests of operators, by phase of the life of one object. Package step promises these
// numbers, so that they are counted.
func TestRequestsTable(t *testing.T) {
	rings.Explore(t, "takes half a minute; TestRequestsOfASet is a sample")
	log.SetLogger(logr.Discard())
	s := newSetup(t)
	table := &table{}

	steps := s.measureWidget(table, "ctrlkit")
	byHand := s.measureWidget(table, "usual")
	s.measureWidget(table, "careful")
	cronJob := s.measureCronJob(table)
	s.installPolicy()
	withPolicy := s.measureWidget(table, "ctrlkit")

	t.Logf("API requests of an operator, for one object\n%s", table)

	atMost(t, "ctrlkit: create until idle", steps["create until idle"].Writes, 3+2)
	atMost(t, "ctrlkit with the policy: create until idle", withPolicy["create until idle"].Writes, 3+1)
	for name, phases := range map[string]map[string]requests.Counts{"ctrlkit": steps, "ctrlkit with the policy": withPolicy, "CronJob": cronJob} {
		atMost(t, name+": resync", phases["resync"].Writes, 0)
		atMost(t, name+": resync, live reads", phases["resync"].Reads, 0)
		atMost(t, name+": one field", phases["one field"].Writes, 2)
		atMost(t, name+": deletion", phases["deletion"].Writes, 1)
	}
	atMost(t, "CronJob: create, and one run", merged(cronJob["create"].Writes, cronJob["one run"].Writes), 1+2)
	if got := requests.Total(byHand["resync"].Writes); got == 0 {
		t.Error("the operator by hand wrote nothing in the resync: was there one?")
	}
}

func atMost(t *testing.T, what string, counts map[string]int, most int) {
	t.Helper()
	if got := requests.Total(counts); got > most {
		t.Errorf("%s: %d requests, want at most %d: %v", what, got, most, counts)
	}
}

func merged(all ...map[string]int) map[string]int {
	sum := make(map[string]int)
	for _, counts := range all {
		for what, n := range counts {
			sum[what] += n
		}
	}
	return sum
}

// A table is what was measured, a line for each phase.
type table struct{ rows []string }

func (t *table) add(operator, phase string, reconciles int, c requests.Counts) {
	t.rows = append(t.rows, fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s", operator, phase, reconciles, requests.Total(c.Writes), c.Refused, requests.Total(c.Reads), c.Events, c))
}

func (t *table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "operator\tphase\treconciles\twrites\trefused\tlive reads\tevents\trequests")
	for _, row := range t.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // to memory
	return b.String()
}

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{
	CRDs: []string{"../widget/crd.yaml", "../../examples/01_cronjob/config/crd/bases"},
}}

func TestMain(m *testing.M) {
	_ = os.Unsetenv("CTRLKIT_CONTROLPLANE") // the controllers of another one would change what is counted
	os.Exit(shared.Main(m))
}

// A setup is a control plane with the definitions.
type setup struct {
	t     *testing.T
	plane *controlplane.ControlPlane
	user  client.Client
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{t: t, plane: shared.ForTest(t)}
	scheme, err := widget.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if s.user, err = client.New(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *setup) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *setup) counter() *requests.Counter {
	s.t.Helper()
	c, err := requests.NewCounter(s.plane.Config())
	s.must(err)
	s.t.Cleanup(c.Close)
	return c
}

func (s *setup) namespace() string {
	s.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "requests-"}}
	s.must(s.user.Create(s.t.Context(), ns))
	return ns.Name
}

// installPolicy installs the admission policy for the finalizer of Widgets, and returns when it is
// in effect.
func (s *setup) installPolicy() {
	s.t.Helper()
	policy, binding, err := install.FinalizerPolicy(widget.Resource, widget.Finalizer)
	s.must(err)
	s.must(client.IgnoreAlreadyExists(s.user.Create(s.t.Context(), policy)))
	s.must(client.IgnoreAlreadyExists(s.user.Create(s.t.Context(), binding)))
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	// The API server does not report when it has compiled a policy: retry until it works.
	s.must(wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		probe := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"}}
		err := s.user.Create(ctx, probe, client.DryRunAll)
		return len(probe.Finalizers) > 0, err
	}))
}

// A measurement is of one operator.
type measurement struct {
	*setup
	operator   string
	counter    *requests.Counter
	reconciles func() int
	table      *table
	phases     map[string]requests.Counts
}

// phase counts the requests from the beginning of do until the operator is idle.
func (m *measurement) phase(name string, do func(ctx context.Context) error) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	before := m.reconciles()
	m.counter.Take()
	m.must(do(ctx))
	m.must(m.counter.AwaitQuiet(ctx, quiet))
	m.phases[name] = m.counter.Take()
	n := m.reconciles() - before
	m.table.add(m.operator, name, n, m.phases[name])
	if n == 0 {
		m.t.Errorf("%s, %s: there was no reconcile", m.operator, name)
	}
}

// measureWidget counts the requests of an operator of Widgets.
func (s *setup) measureWidget(table *table, operator string) map[string]requests.Counts {
	s.t.Helper()
	o, err := operators.Named(operator)
	s.must(err)
	m := s.newMeasurement(table, operator)
	namespace := s.namespace()
	defer m.start(namespace, o)()

	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Spec: widget.Spec{First: "1", Second: "2", Third: "3"}}
	m.phase("create until idle", func(ctx context.Context) error { return s.user.Create(ctx, w) })
	m.check(w)
	m.phase("resync", m.counter.Resync)
	m.phase("one field", func(ctx context.Context) error {
		return s.user.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"second":"two"}}`)))
	})
	m.check(w)
	m.phase("deletion", func(ctx context.Context) error { return s.user.Delete(ctx, w) })
	if err := s.user.Get(s.t.Context(), client.ObjectKeyFromObject(w), w); client.IgnoreNotFound(err) != nil || err == nil {
		s.t.Errorf("%s: the Widget still exists: %v", operator, err)
	}
	return m.phases
}

// newMeasurement returns a measurement of an operator that runs in this process.
func (s *setup) newMeasurement(table *table, operator string) *measurement {
	s.t.Helper()
	return &measurement{
		setup: s, operator: operator, counter: s.counter(), reconciles: func() int { return reconcilesHere(s.t, "widget") }, table: table,
		phases: make(map[string]requests.Counts),
	}
}

// check fails if a Widget has not converged.
func (m *measurement) check(w *widget.Widget) {
	m.t.Helper()
	key := client.ObjectKeyFromObject(w)
	var secret corev1.Secret
	m.must(errors.Join(m.user.Get(m.t.Context(), key, w), m.user.Get(m.t.Context(), key, &secret)))
	if string(secret.Data["password"]) != w.Spec.Second || w.Status.ObservedGeneration != w.Generation || len(w.Finalizers) != 1 {
		m.t.Fatalf("%s: the Widget is not done: %+v, its Secret %v", m.operator, w, secret.Data)
	}
}

// start runs an operator in this process, behind the counter, and returns when its cache has
// synced.
func (m *measurement) start(namespace string, o operators.Operator) (stop func()) {
	m.t.Helper()
	settings := process.Settings{Namespace: namespace, Workers: 1}
	options, err := o.Options(settings)
	m.must(err)
	options.Scheme, options.Logger, options.Controller.SkipNameValidation = m.user.Scheme(), logr.Discard(), new(true)
	mgr, err := ctrl.NewManager(m.counter.Config(), options)
	m.must(err)
	m.must(o.Add(mgr, settings))
	ctx, cancel := context.WithCancel(m.t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	m.ready(2)
	return func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			m.t.Errorf("%s: the operator ended: %v", m.operator, err)
		}
	}
}

// ready returns when an operator has opened its watches and is idle.
func (m *measurement) ready(watches int) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	m.must(m.counter.AwaitWatches(ctx, watches))
	m.must(m.counter.AwaitQuiet(ctx, quiet))
}

// reconcilesHere returns how many reconciles controllers of a name have begun in this process.
func reconcilesHere(t *testing.T, controller string) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range f.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == controller {
					sum += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return int(sum)
}

// measureCronJob counts the requests of the program examples/01_cronjob. The test completes its
// Job, since no machine runs it.
func (s *setup) measureCronJob(table *table) map[string]requests.Counts {
	s.t.Helper()
	m := &measurement{setup: s, operator: "examples/01_cronjob", counter: s.counter(), table: table, phases: make(map[string]requests.Counts)}
	m.reconciles = m.startProgram("../../examples", "./01_cronjob")
	namespace := s.namespace()
	key := client.ObjectKey{Namespace: namespace, Name: "one"}

	c := cronJob(key)
	m.phase("create", func(ctx context.Context) error { return s.user.Create(ctx, c) })
	m.phase("one run", m.counter.AwaitWrite)
	// Before the next run is due: then this is all that happens.
	m.phase("one field", func(ctx context.Context) error {
		return s.user.Patch(ctx, c, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`)))
	})
	m.phase("its Job completes", func(ctx context.Context) error { return s.completeJob(ctx, namespace) })
	m.phase("resync", m.counter.Resync)
	m.phase("deletion", func(ctx context.Context) error { return s.user.Delete(ctx, c) })
	return m.phases
}

func cronJob(key client.ObjectKey) *unstructured.Unstructured {
	pod := map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "one", "image": "busybox"}}}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch.ctrlkit.dev/v1", "kind": "CronJob", "metadata": map[string]any{"namespace": key.Namespace, "name": key.Name},
		"spec": map[string]any{
			"schedule": "@every 6s", "concurrencyPolicy": "Forbid",
			"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": pod}}},
		},
	}}
}

// completeJob marks the only Job in a namespace as complete.
func (s *setup) completeJob(ctx context.Context, namespace string) error {
	jobs := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "batch/v1", "kind": "JobList"}}
	if err := s.user.List(ctx, jobs, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(jobs.Items) != 1 {
		return fmt.Errorf("%d Jobs, want one", len(jobs.Items))
	}
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"startTime":%[1]q,"completionTime":%[1]q,"succeeded":1,"uncountedTerminatedPods":{},"conditions":[
		{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%[1]q},{"type":"Complete","status":"True","lastTransitionTime":%[1]q}]}}`, now)
	return s.user.Status().Patch(ctx, &jobs.Items[0], client.RawPatch(types.MergePatchType, []byte(patch)))
}

// startProgram builds a program of another module and runs it behind the counter. It returns how to
// find out how often it has reconciled.
func (m *measurement) startProgram(module, program string) (reconciles func() int) {
	m.t.Helper()
	dir := m.t.TempDir()
	binary := filepath.Join(dir, "operator")
	build := exec.CommandContext(m.t.Context(), "go", "build", "-o", binary, program)
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		m.t.Fatalf("building %s: %v\n%s", program, err, out)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	m.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"counted": {Server: m.counter.Config().Host}},
		Contexts:       map[string]*clientcmdapi.Context{"counted": {Cluster: "counted"}},
		CurrentContext: "counted",
	}, kubeconfig))
	address := freeAddress(m.t)
	ctx, cancel := context.WithCancel(m.t.Context())
	run := exec.CommandContext(ctx, binary, "--kubeconfig", kubeconfig, "--metrics-bind-address", address)
	run.Stderr = &strings.Builder{}
	m.must(run.Start())
	m.t.Cleanup(func() {
		cancel()
		_ = run.Wait() // it was killed
		if m.t.Failed() {
			m.t.Logf("the program said:\n%s", run.Stderr)
		}
	})
	m.ready(2)
	return func() int { return reconcilesAt(m.t, "http://"+address+"/metrics") }
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// reconcilesAt reads how many reconciles a program has begun from its metrics.
func reconcilesAt(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "controller_runtime_reconcile_total{") {
			fields := strings.Fields(lines.Text())
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return int(sum)
}
