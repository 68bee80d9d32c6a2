// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/player"
	"github.com/ctrlkit/ctrlkit/step"
)

// A ledger is who works on which object. There is one for each run: the plans of a test process run
// one after the other.
type ledger struct {
	mu      sync.Mutex // for all below
	holders map[types.UID]string
	did     map[string]int // steps, by shard
	wrong   []string
}

var book ledger

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders, l.did, l.wrong = map[types.UID]string{}, map[string]int{}, nil
}

// begin notes that a shard begins to work on an object. The end is called when it has ended.
func (l *ledger) begin(shard string, obj client.Object) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.holders[obj.GetUID()]; other != "" {
		l.wrong = append(l.wrong, fmt.Sprintf("%s works on %s while %s does", shard, obj.GetName(), other))
	}
	if has := obj.GetLabels()[shardLabel]; has != shard {
		l.wrong = append(l.wrong, fmt.Sprintf("%s works on %s of %q", shard, obj.GetName(), has))
	}
	l.holders[obj.GetUID()] = shard
	l.did[shard]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.holders[obj.GetUID()] == shard {
			delete(l.holders, obj.GetUID())
		}
	}
}

func (l *ledger) accuse(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, text)
}

// crashed notes that all shards have ended.
func (l *ledger) crashed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.holders)
}

// slow is a step that takes some seconds, and needs a cleanup.
type slow struct {
	shard string
	for_  time.Duration
}

func (s slow) step() step.Step[*corev1.ConfigMap] {
	return step.Step[*corev1.ConfigMap]{Name: "Slow", Do: s.do, Cleanup: s.cleanUp}
}

func (s slow) do(ctx context.Context, req *step.Request[*corev1.ConfigMap]) error {
	defer book.begin(s.shard, req.Snapshot())()
	takes := s.for_
	if strings.HasPrefix(req.Object.Name, "hung") {
		takes = 3 * time.Minute
	}
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slow) cleanUp(ctx context.Context, req *step.Request[*corev1.ConfigMap]) error {
	return s.do(ctx, req)
}

// A replica is one shard of the operator, and what is wrong with it.
type replica struct {
	name       string
	begins     time.Duration    // after the start
	stalls     [2]time.Duration // from when to when no request of it is answered, after the start
	handlers   bool             // it has handlers instead of an engine
	handsEarly bool             // it hands over when it sees the label
	ringless   bool             // it does not know of the ring
}

// stalled is a transport on which nothing comes through for a time.
type stalled struct {
	from, to time.Time
	next     http.RoundTripper
}

func (s stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	if now := time.Now(); now.Before(s.from) || !now.Before(s.to) {
		return s.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(time.Until(s.to)):
		return nil, fmt.Errorf("the network was down")
	}
}

// operate runs replicas beside each other. One that ends is started again.
func operate(replicas ...replica) func(ctx context.Context, p *sim.Process) error {
	return func(ctx context.Context, p *sim.Process) error {
		if strings.HasPrefix(p.Config().Host, "http://operator.") {
			book.reset()
		}
		book.crashed()
		start := time.Now()
		var all sync.WaitGroup
		for _, r := range replicas {
			all.Go(func() {
				sleep(ctx, r.begins)
				for ctx.Err() == nil {
					if err := r.run(ctx, p, start); err != nil && ctx.Err() == nil {
						p.Logger().Info("A shard has ended", "shard", r.name, "why", err.Error())
					}
					sleep(ctx, time.Second)
				}
			})
		}
		all.Wait()
		return nil
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (r replica) run(ctx context.Context, p *sim.Process, start time.Time) error {
	config := p.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return stalled{start.Add(r.stalls[0]), start.Add(r.stalls[1]), next}
	})
	options := p.ManagerOptions()
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(30*time.Second), new(20*time.Second), new(8*time.Second)
	if r.handlers {
		options.NewCache = handlers.Wrap(options.NewCache)
	}
	of := operator.ShardOptions{Ring: "things", Name: r.name, Namespace: "operators"}
	if r.ringless {
		of.Ring = ""
	}
	mgr, ours, err := operator.NewShardManager(config, options, of)
	if err != nil {
		return err
	}
	if r.handsEarly {
		if err := handEarly(ctx, mgr); err != nil {
			return err
		}
	}
	add := r.addEngine
	if r.handlers {
		add = r.addHandlers
	}
	if err := add(mgr, ours); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (r replica) addEngine(mgr ctrl.Manager, ours *shard.Shard) error {
	engine, err := step.New(step.Options[*corev1.ConfigMap]{
		Name: "thing", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Finalizer: "test.ctrlkit.dev/thing", Shard: ours,
		Controller: controller.Options{MaxConcurrentReconciles: 3},
	}, r.steps()...)
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}))
}

// addHandlers adds the steps as one handler, and another one that is called for what is gone.
func (r replica) addHandlers(mgr ctrl.Manager, ours *shard.Shard) error {
	registry, err := handlers.New(mgr, handlers.Options{Name: "thing", Shard: ours, Default: handlers.KindOptions{Workers: 3}})
	if err != nil {
		return err
	}
	_, err = registry.Register(
		handlers.Steps("steps", handlers.StepsOptions[*corev1.ConfigMap]{Finalizer: "test.ctrlkit.dev/thing"}, r.steps()...),
		handlers.Handler[*corev1.ConfigMap]{
			Name: "plain",
			OnChange: func(_ context.Context, obj *corev1.ConfigMap) error {
				book.begin(r.name, obj)()
				return nil
			},
			OnGone: func(ctx context.Context, name client.ObjectKey) error {
				if err := mgr.GetAPIReader().Get(ctx, name, &corev1.ConfigMap{}); err == nil {
					book.accuse(fmt.Sprintf("%s takes %s for deleted", r.name, name))
				}
				return nil
			},
		})
	return err
}

func (r replica) steps() []step.Step[*corev1.ConfigMap] {
	return []step.Step[*corev1.ConfigMap]{slow{r.name, 3 * time.Second}.step(), apply.Children("Copy", func(_ context.Context, req *step.Request[*corev1.ConfigMap], want *apply.Set) error {
		want.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: req.Object.Name}, StringData: req.Object.Data})
		return nil
	}, apply.Owns(&corev1.Secret{}))}
}

// handEarly removes the labels whatever runs.
func handEarly(ctx context.Context, mgr ctrl.Manager) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, now any) {
		if obj := now.(*corev1.ConfigMap).DeepCopy(); obj.Labels[drainLabel] != "" {
			before := obj.DeepCopy()
			delete(obj.Labels, drainLabel)
			delete(obj.Labels, shardLabel)
			go func() { _ = mgr.GetClient().Patch(ctx, obj, client.MergeFrom(before)) }()
		}
	}})
	return err
}

func thing(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("thing-%d", i)}, Data: map[string]string{"n": "0"}}
}

const things = 6 // of which each of the shards a, e and s has two, or three of two shards

// life creates, changes and deletes things while shards come and go.
func life(w *sim.World) {
	for i := range things {
		w.Create(thing(i))
	}
	for n := 1; n <= 6; n++ {
		w.Sleep(40 * time.Second)
		for i := range things {
			sim.Update(w, thing(i), func(cm *corev1.ConfigMap) { cm.Data["n"] = fmt.Sprint(n) })
		}
	}
	w.Settle()
	for i := range things {
		secret, ok := sim.Get(w, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: thing(i).Name}})
		if !ok || string(secret.Data["n"]) != "6" {
			panic(fmt.Sprintf("%s is orphaned: its copy has %s", thing(i).Name, secret.Data["n"]))
		}
	}
	for i := range things {
		w.Delete(thing(i))
	}
	w.Settle()
	book.mu.Lock()
	defer book.mu.Unlock()
	if len(book.did) < 2 {
		panic(fmt.Sprintf("the work is not shared: %v", book.did))
	}
	if len(book.wrong) > 0 {
		panic(strings.Join(book.wrong, "; "))
	}
	w.Log(fmt.Sprintf("steps by shard: %v", book.did))
}

func ring() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sharding.timebertt.dev/v1alpha1", "kind": "ControllerRing", "metadata": map[string]any{"name": "things"},
		"spec": map[string]any{"resources": []any{map[string]any{"group": "", "resource": "configmaps", "controlledResources": []any{map[string]any{"group": "", "resource": "secrets"}}}}},
	}}
}

func workload(replicas ...replica) sim.Workload {
	return sim.Workload{
		CRDs:     []string{"testdata/controllerring.yaml"},
		Objects:  []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "operators"}}, ring()},
		Players:  player.None().With(sharder(0, 0)),
		Operator: operate(replicas...), Script: life,
		Quiet: 6 * time.Minute, // objects of others, which no cache has, are read again every five
		Normalize: func(obj *sim.Object) bool {
			labels, _, _ := unstructured.NestedStringMap(obj.Content, "metadata", "labels")
			delete(labels, shardLabel)
			delete(labels, drainLabel)
			_ = unstructured.SetNestedStringMap(obj.Content, labels, "metadata", "labels")
			return obj.Resource.Resource != "leases"
		},
	}
}

var common = []sim.Option{
	sim.WithoutOracle(oracle.SilentWhenIdle, "a restart moves objects between the shards"),
	sim.WithoutOracle(oracle.NoNoopWrites, "a child that has moved is applied by its new shard, before its cache has it"),
}

// Three shards share the work. One begins later, and one is cut off until its Lease is another's,
// and comes back.
func TestShards(t *testing.T) {
	rings.Test(t, "simulates")
	sim.Run(t, workload(
		replica{name: "a"},
		replica{name: "e", stalls: [2]time.Duration{70 * time.Second, 190 * time.Second}},
		replica{name: "s", begins: 50 * time.Second},
	), append(common, sim.WithSample(8))...)
}

// The same with handlers, which must not take an object that has moved for one that is gone.
func TestShardsWithHandlers(t *testing.T) {
	rings.Test(t, "simulates")
	sim.Run(t, workload(replica{name: "a", handlers: true}, replica{name: "e", handlers: true, begins: 50 * time.Second}), append(common, sim.WithSample(4))...)
}

// Two processes have one name, as after a node was lost that has not stopped. The second waits for
// the Lease of the first, which is cut off, and later comes back.
func TestShardsOfOneName(t *testing.T) {
	rings.Test(t, "simulates")
	sim.Run(t, workload(
		replica{name: "a", stalls: [2]time.Duration{70 * time.Second, 150 * time.Second}},
		replica{name: "a", begins: 45 * time.Second},
		replica{name: "e"},
	), append(common, sim.WithSample(1))...)
}

// The sharder is dead while a shard begins, another one is cut off, and objects change. What it has
// assigned stays until it is there again.
func TestShardsWithoutSharder(t *testing.T) {
	rings.Test(t, "simulates")
	w := workload(replica{name: "a"}, replica{name: "e", stalls: [2]time.Duration{70 * time.Second, 190 * time.Second}}, replica{name: "s", begins: 50 * time.Second})
	w.Players = player.None().With(sharder(45*time.Second, 170*time.Second))
	sim.Run(t, w, append(common, sim.WithSample(1))...)
}

// hung is an object whose step takes three minutes.
func hung(i int) *corev1.ConfigMap {
	cm := thing(i)
	cm.Name = fmt.Sprintf("hung-%d", i)
	return cm
}

// hang has all workers of a shard hang, before another shard begins.
func hang(w *sim.World) {
	for i := range things {
		w.Create(thing(i))
	}
	w.Sleep(25 * time.Second)
	for i := range 3 {
		w.Create(hung(i))
	}
	w.Sleep(75 * time.Second)
	moved := 0
	for i := range things {
		cm, _ := sim.Get(w, thing(i))
		if _, waits := cm.Labels[drainLabel]; waits {
			panic(cm.Name + " waits for workers that hang with others")
		}
		if cm.Labels[shardLabel] == "e" {
			moved++
		}
	}
	waiting := 0
	for i := range 3 {
		cm, _ := sim.Get(w, hung(i))
		if choose([]string{"a", "e"}, cm.Name) != "e" {
			continue
		}
		waiting++
		if cm.Labels[shardLabel] != "a" {
			panic(cm.Name + " was handed over while its step runs")
		}
	}
	if moved == 0 || waiting == 0 {
		panic(fmt.Sprintf("%d were handed over, and %d wait for their steps", moved, waiting))
	}
	w.Settle()
	for i := range things {
		w.Delete(thing(i))
	}
	for i := range 3 {
		w.Delete(hung(i))
	}
	w.Settle()
	book.mu.Lock()
	defer book.mu.Unlock()
	if len(book.wrong) > 0 {
		panic(strings.Join(book.wrong, "; "))
	}
}

// While all workers of a shard are busy with steps that hang, objects that no worker has are handed
// over. Those whose steps run are, when these have ended.
func TestHandOverAroundHungSteps(t *testing.T) {
	rings.Test(t, "simulates")
	w := workload(replica{name: "a"}, replica{name: "e", begins: 50 * time.Second})
	w.Script = hang
	sim.Run(t, w, append(common, sim.WithSample(1))...)
}

// Replicas that work on what another one has are found: one that hands over while it still
// reconciles, and one that does not know of the ring.
func TestWrongShardsAreFound(t *testing.T) {
	for name, wrong := range map[string]replica{
		"hands over early": {name: "a", handsEarly: true},
		"ignores the ring": {name: "a", ringless: true},
	} {
		t.Run(name, func(t *testing.T) {
			rings.Test(t, "simulates")
			report := sim.Explore(t, workload(wrong, replica{name: "e", begins: 41 * time.Second}), append(common, sim.WithSample(1))...)
			if report == nil {
				return
			}
			if found := report.Violated(fault.Plan{}); !slices.Contains(found, oracle.ScriptRuns) {
				t.Errorf("two shards have worked on one object, and found is only %v", found)
			}
		})
	}
}
