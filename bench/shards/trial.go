// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/controlplane"
)

const namespace = "work"

// A trial is one run with a ring of replicas.
type trial struct {
	progress io.Writer
	sharder  string // the directory of its checkout
	objects  int
	replicas int
	kills    int
	audit    string // the file of the audit log
	dir      string // a temporary one, with the programs

	plane   *controlplane.ControlPlane
	user    client.Client
	shards  map[string]*process.Process
	started int // how many replicas
	rounds  int // how often objects were created to be deleted
	rows    []string
}

func (t *trial) run(ctx context.Context, stdout io.Writer) (err error) {
	if err := t.startPlane(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.plane.Stop()) }()
	end, err := t.startSharder(ctx)
	if err != nil {
		return err
	}
	defer end()
	t.shards = map[string]*process.Process{}
	defer func() {
		for _, p := range t.shards {
			err = errors.Join(err, p.Stop())
		}
	}()
	for range t.replicas {
		if err := t.startShard(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(t.create(ctx), t.join(ctx)); err != nil {
		return err
	}
	for range t.kills {
		if err := t.kill(ctx); err != nil {
			return err
		}
	}
	if err := t.alone(ctx); err != nil {
		return err
	}
	return t.judge(stdout)
}

// startPlane starts a control plane that writes an audit log.
func (t *trial) startPlane(ctx context.Context) error {
	file := filepath.Join(t.dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		CRDs:     []string{filepath.Join("widget", "crd.yaml"), filepath.Join(t.sharder, "config", "crds", "sharding.timebertt.dev_controllerrings.yaml")},
		Flags:    map[string][]string{"kube-apiserver": {"--audit-policy-file=" + file, "--audit-log-path=" + t.audit, "--audit-log-maxsize=20000"}},
		Progress: t.progress,
	})
	if err != nil {
		return err
	}
	t.plane = plane
	scheme, err := widget.NewScheme()
	if err != nil {
		return errors.Join(err, plane.Stop())
	}
	config := plane.Config()
	config.QPS = -1
	if t.user, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return errors.Join(err, plane.Stop())
	}
	for _, name := range []string{namespace, "sharding-system"} {
		if err := t.user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return errors.Join(err, plane.Stop())
		}
	}
	return nil
}

// startSharder starts the sharder, with a webhook on this machine, and creates the ring.
func (t *trial) startSharder(ctx context.Context) (end func(), err error) {
	config, err := t.sharderConfig()
	if err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(t.dir, "sharder.log"))
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(t.dir, "sharder"), "--config="+config)
	command.Env = append(os.Environ(), "KUBECONFIG="+t.plane.Kubeconfig())
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() { _, _, _ = command.Process.Kill(), command.Wait(), output.Close() }, t.user.Create(ctx, newRing())
}

// startShard starts one more replica, and waits until its caches are filled.
func (t *trial) startShard(ctx context.Context) error {
	t.started++
	name := fmt.Sprintf("%s%d", shardPrefix, t.started)
	kubeconfig, err := t.kubeconfigOf(name)
	if err != nil {
		return err
	}
	p, err := process.Start(ctx, filepath.Join(t.dir, "operator"), process.Settings{
		Kubeconfig: kubeconfig, Operator: "ctrlkit", Namespace: namespace, Workers: 10, Ring: ring, Shard: name,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	t.shards[name] = p
	return nil
}

func (t *trial) row(format string, args ...any) {
	t.rows = append(t.rows, fmt.Sprintf(format, args...))
	fmt.Fprintln(t.progress, t.rows[len(t.rows)-1])
}

// The names of objects that stay, and of those that are deleted while the ring changes, begin with
// these.
const (
	staying = "w0"
	leaving = "leaving-"
)

// each calls do for each object that stays, ten at a time.
func (t *trial) each(ctx context.Context, do func(ctx context.Context, in metav1.ObjectMeta) error) error {
	return tenAtOnce(ctx, t.objects, staying+"%06d", do)
}

func tenAtOnce(ctx context.Context, n int, format string, do func(ctx context.Context, in metav1.ObjectMeta) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i := range n {
		group.Go(func() error { return do(ctx, metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf(format, i)}) })
	}
	return group.Wait()
}

func (t *trial) create(ctx context.Context) error {
	begin := time.Now()
	err := t.each(ctx, func(ctx context.Context, in metav1.ObjectMeta) error {
		return t.user.Create(ctx, &widget.Widget{ObjectMeta: in, Spec: widget.Spec{First: "one", Second: "two", Third: "three"}})
	})
	if err != nil {
		return err
	}
	if err := t.converge(ctx, "one"); err != nil {
		return err
	}
	t.row("| %d objects created, and all of them done | %.1f s |", t.objects, time.Since(begin).Seconds())
	return t.distribution(ctx)
}

// distribution says how the objects and the memory are distributed.
func (t *trial) distribution(ctx context.Context) error {
	owned, err := t.owned(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(t.shards)) {
		heap, err := t.shards[name].Heap()
		if err != nil {
			return err
		}
		t.row("| %s: objects, of an even part, reconciles, heap | %d, %.2f, %d, %.1f MB |", name, owned[name],
			float64(owned[name])*float64(len(t.shards))/float64(t.objects), heap.Reconciles, float64(heap.Heap)/1e6)
	}
	return nil
}

// owned returns how many objects each shard has.
func (t *trial) owned(ctx context.Context) (map[string]int, error) {
	all, err := t.assignments(ctx)
	owned := map[string]int{}
	for _, shard := range all {
		owned[shard]++
	}
	return owned, err
}

// assignments returns the shard of each object, empty if it has none or is to be handed over.
func (t *trial) assignments(ctx context.Context) (map[string]string, error) {
	var list widget.List
	if err := t.user.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, w := range list.Items {
		if !strings.HasPrefix(w.Name, staying) {
			continue
		}
		all[w.Name] = w.Labels[shardLabel+ring]
		if _, drained := w.Labels[drainLabel+ring]; drained {
			all[w.Name] = ""
		}
	}
	return all, nil
}

// converge waits until all ConfigMaps have what the objects say, and each object is one of a living
// shard.
func (t *trial) converge(ctx context.Context, first string) error {
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 30*time.Minute, true, func(ctx context.Context) (bool, error) {
		owned, err := t.owned(ctx)
		if err != nil {
			return false, err
		}
		for shard := range owned {
			if t.shards[shard] == nil {
				return false, nil
			}
		}
		var children corev1.ConfigMapList
		if err := t.user.List(ctx, &children, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		done := 0
		for _, c := range children.Items {
			if strings.HasPrefix(c.Name, staying) && slices.Contains(slices.Collect(maps.Values(c.Data)), first) {
				done++
			}
		}
		return done == t.objects, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until all objects are done: %w", err)
	}
	return nil
}

// change changes all objects.
func (t *trial) change(ctx context.Context, to string) error {
	return t.each(ctx, func(ctx context.Context, in metav1.ObjectMeta) error {
		return t.user.Patch(ctx, &widget.Widget{ObjectMeta: in}, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"first":%q}}`, to)))
	})
}

// leavers is how many objects are deleted while the ring changes: a tenth of those that stay.
func (t *trial) leavers() int { return t.objects/10 + 1 }

func (t *trial) leavingNames() string { return fmt.Sprintf("%s%d-%%06d", leaving, t.rounds) }

// createLeaving creates the objects that will be deleted, and waits until each is one that a shard
// protects.
func (t *trial) createLeaving(ctx context.Context) error {
	t.rounds++ // other names, as nothing here collects the children of those before
	err := tenAtOnce(ctx, t.leavers(), t.leavingNames(), func(ctx context.Context, in metav1.ObjectMeta) error {
		return t.user.Create(ctx, &widget.Widget{ObjectMeta: in, Spec: widget.Spec{First: "one", Second: "two", Third: "three"}})
	})
	if err != nil {
		return err
	}
	return t.awaitLeaving(ctx, "protected", t.leavers(), func(w *widget.Widget) bool { return len(w.Finalizers) > 0 })
}

// deleteLeaving deletes them, and waits until the shards have let all of them go.
func (t *trial) deleteLeaving(ctx context.Context) error {
	err := tenAtOnce(ctx, t.leavers(), t.leavingNames(), func(ctx context.Context, in metav1.ObjectMeta) error {
		return t.user.Delete(ctx, &widget.Widget{ObjectMeta: in})
	})
	if err != nil {
		return err
	}
	return t.awaitLeaving(ctx, "gone", 0, func(*widget.Widget) bool { return true })
}

// awaitLeaving waits until so many of them are as is wanted.
func (t *trial) awaitLeaving(ctx context.Context, what string, want int, is func(*widget.Widget) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		var list widget.List
		if err := t.user.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		n := 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, leaving) && is(&list.Items[i]) {
				n++
			}
		}
		return n == want, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the objects that are deleted are %s: %w", what, err)
	}
	return nil
}

// during changes all objects, and deletes others, while the ring changes, and says how many objects
// moved, and how long it took until all belonged to living shards.
func (t *trial) during(ctx context.Context, what string, do func() error) error {
	if err := t.createLeaving(ctx); err != nil {
		return err
	}
	before, err := t.assignments(ctx)
	if err != nil {
		return err
	}
	to := fmt.Sprintf("during %s", what)
	group, in := errgroup.WithContext(ctx)
	group.Go(func() error { return t.change(in, to) })
	group.Go(func() error { return t.deleteLeaving(in) })
	begin := time.Now()
	if err := do(); err != nil {
		return errors.Join(err, group.Wait())
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := t.converge(ctx, to); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := t.assignments(ctx)
	if err != nil {
		return err
	}
	moved := 0
	for name, shard := range after {
		if before[name] != shard {
			moved++
		}
	}
	t.row("| %s: objects moved, deleted, time until all were done | %d, %d, %.1f s |", what, moved, t.leavers(), took.Seconds())
	return t.distribution(ctx)
}

// join starts one more replica. Objects move to it, whose old shard hands them over.
func (t *trial) join(ctx context.Context) error {
	return t.during(ctx, "one joins", func() error {
		if err := t.startShard(ctx); err != nil {
			return err
		}
		name := fmt.Sprintf("%s%d", shardPrefix, t.started)
		return wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
			owned, err := t.owned(ctx)
			return owned[name] > 0 && owned[""] == 0, err
		})
	})
}

// kill kills a replica, and starts another in its place.
func (t *trial) kill(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(t.shards))
	name := names[rand.IntN(len(names))]
	return t.during(ctx, "SIGKILL of "+name, func() error {
		p := t.shards[name]
		delete(t.shards, name)
		return errors.Join(p.Stop(), t.startShard(ctx)) // Stop kills
	})
}

// alone measures the memory of one replica that has all objects.
func (t *trial) alone(ctx context.Context) error {
	p, err := process.Start(ctx, filepath.Join(t.dir, "operator"), process.Settings{Kubeconfig: t.plane.Kubeconfig(), Operator: "ctrlkit", Namespace: namespace, Workers: 10})
	if err != nil {
		return err
	}
	_, err = p.Await(ctx, "the first reconciles", func(s process.Stats) bool { return s.Reconciles >= t.objects })
	if err == nil {
		var heap process.Stats
		if heap, err = p.Heap(); err == nil {
			t.row("| one process without a ring: heap, writes | %.1f MB, %d |", float64(heap.Heap)/1e6, heap.Writes)
		}
	}
	return errors.Join(err, p.Stop())
}

// judge reads the audit log, and prints the table.
func (t *trial) judge(stdout io.Writer) error {
	file, err := os.Open(t.audit)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is read
	a, err := readAudit(file, ring)
	if err != nil {
		return err
	}
	writes, several := 0, 0
	for _, n := range a.writes {
		writes += n
	}
	for _, n := range a.owners {
		if n > 1 {
			several++
		}
	}
	t.row("| audit: writes of shards, hand-overs, objects and children that several shards wrote in turn | %d, %d, %d |", writes, a.handovers, several)
	t.row("| audit: writes of objects that were not assigned to their writer | %d |", len(a.violations))
	fmt.Fprintf(stdout, "| of %d objects in a ring of %d replicas | |\n|---|---|\n%s\n", t.objects, t.replicas, strings.Join(t.rows, "\n"))
	if len(a.violations) > 0 {
		return fmt.Errorf("%d writes of objects of others, such as:\n%s", len(a.violations), strings.Join(a.violations[:min(10, len(a.violations))], "\n"))
	}
	return nil
}
