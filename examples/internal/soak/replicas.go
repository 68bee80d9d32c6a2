// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// actionLimit is how long one action may take: the Lease of a leader has to expire, and its
// successor to fill its caches.
const actionLimit = 90 * time.Second

// An action is what is done to replicas, of which one is the leader.
type action struct {
	name string
	do   func(*replicas, context.Context) error
	what string // for people
}

var actions = []action{
	{"stop", (*replicas).stop, "SIGSTOP of the leader until another one has its Lease, and SIGCONT"},
	{"end", (*replicas).end, "SIGTERM of the leader"},
	{"kill", (*replicas).kill, "SIGKILL of the leader"},
	{"freeze", (*replicas).freeze, "SIGSTOP of the API server for 5 to 20 seconds, and SIGCONT"},
}

// counts are how often each action is done, by its place in actions. It is a flag.Value.
type counts []int

func (c *counts) String() string {
	var parts []string
	for i, n := range *c {
		parts = append(parts, fmt.Sprintf("%s=%d", actions[i].name, n))
	}
	return strings.Join(parts, ",")
}

// Set implements [flag.Value].
func (c *counts) Set(text string) error {
	*c = make(counts, len(actions))
	for part := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(actions, func(a action) bool { return a.name == name })
		if i < 0 {
			return fmt.Errorf("unknown action %q: want a list such as %s", name, defaultCounts.String())
		}
		if _, err := fmt.Sscanf(part, name+"=%d", &(*c)[i]); err != nil || (*c)[i] < 0 {
			return fmt.Errorf("%q: want a number, as in %s=3", part, name)
		}
	}
	return nil
}

var defaultCounts = counts{4, 1, 1, 1}

// plan returns the actions in a random order.
func (c counts) plan(random *rand.Rand) (plan []action) {
	for i, n := range c {
		plan = append(plan, slices.Repeat(actions[i:i+1], n)...)
	}
	random.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

// replicas are several processes of an operator, of which one at a time is the leader.
type replicas struct {
	*soaking
	random *rand.Rand

	stopped []stopped
	changes []change
	frozen  time.Duration
}

// stopped is a leader that was stopped until it had a successor, and resumed.
type stopped struct {
	process    string
	pid        int
	at, resume time.Time
}

// A change is one of the leader.
type change struct {
	why, from string
	at        time.Time
}

// chaos does the actions of a plan, with a pause before each.
func (r *replicas) chaos(ctx context.Context, plan []action, start time.Time) error {
	for _, a := range plan {
		if err := sleepUntil(ctx, time.Now().Add(span{2 * time.Second, 6 * time.Second}.from(r.random))); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, actionLimit)
		err := a.do(r, limited)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", a.what, err)
		}
	}
	return sleepUntil(ctx, start.Add(r.options.chaos))
}

// leader waits until a replica has the Lease that is not the given process, and returns it.
func (r *replicas) leader(ctx context.Context, not string) (*operator, error) {
	for {
		var lease coordinationv1.Lease
		err := r.user.Get(ctx, client.ObjectKey{Namespace: r.home(), Name: r.lease}, &lease)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("looking for the leader: %w", err)
		}
		by := writerOf(&lease)
		for _, o := range r.operators {
			if by != not && by == o.processName() {
				return o, nil
			}
		}
		if err := sleepUntil(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return nil, fmt.Errorf("looking for a leader that is not %q: %w", not, err)
		}
	}
}

// writerOf returns the process that has written a Lease last.
func writerOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return ""
	}
	last := slices.MaxFunc(append([]metav1.ManagedFieldsEntry{{Time: &metav1.Time{}}}, lease.ManagedFields...), func(a, b metav1.ManagedFieldsEntry) int {
		return a.Time.Compare(b.Time.Time)
	})
	return last.Manager
}

// stop stops the leader until another one has its Lease, and resumes it. It ends by itself then.
func (r *replicas) stop(ctx context.Context) error {
	leader, err := r.leader(ctx, "")
	if err != nil {
		return err
	}
	s := stopped{process: leader.processName(), pid: leader.process(), at: time.Now()}
	if err := syscall.Kill(s.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	_, err = r.leader(ctx, s.process)
	if err == nil {
		err = sleepUntil(ctx, time.Now().Add(span{time.Second, 5 * time.Second}.from(r.random)))
	}
	leader.mayEnd(time.Now().Add(actionLimit), lostLease)
	s.resume = time.Now()
	if err := errors.Join(err, syscall.Kill(s.pid, syscall.SIGCONT)); err != nil {
		return err
	}
	r.stopped = append(r.stopped, s)
	r.changes = append(r.changes, change{"SIGSTOP", s.process, s.at})
	return leader.awaitAnother(ctx, s.process)
}

// lostLease is what a leader says that ends because it has not renewed its Lease.
const lostLease = "leader election lost"

// end ends the leader gracefully.
func (r *replicas) end(ctx context.Context) error {
	return r.signal(ctx, syscall.SIGTERM, "SIGTERM")
}

func (r *replicas) kill(ctx context.Context) error {
	return r.signal(ctx, syscall.SIGKILL, "SIGKILL")
}

func (r *replicas) signal(ctx context.Context, s syscall.Signal, name string) error {
	leader, err := r.leader(ctx, "")
	if err != nil {
		return err
	}
	c := change{name, leader.processName(), time.Now()}
	leader.mayEnd(time.Now().Add(actionLimit), "")
	if err := syscall.Kill(leader.process(), s); err != nil {
		return err
	}
	r.changes = append(r.changes, c)
	if err := leader.awaitAnother(ctx, c.from); err != nil {
		return err
	}
	_, err = r.leader(ctx, c.from)
	return err
}

// freeze stops the API server for a time. Replicas may end, and be started again, until they have
// it again.
func (r *replicas) freeze(ctx context.Context) error {
	pid := processWith("--audit-log-path=" + r.auditLog())
	if pid == 0 {
		return errors.New("the process of the API server was not found")
	}
	for _, o := range r.operators {
		o.mayEnd(time.Now().Add(actionLimit), "")
	}
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	err := sleepUntil(ctx, began.Add(span{5 * time.Second, 20 * time.Second}.from(r.random)))
	if err := errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil {
		return err
	}
	r.frozen += time.Since(began)
	_, err = r.leader(ctx, "")
	return err
}

// checks returns what became of the actions, by the audit log and by what the system has seen.
func (r *replicas) checks() ([]check, error) {
	file, err := os.Open(r.auditLog())
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read from
	writes, err := readWrites(file)
	if err != nil {
		return nil, err
	}
	wrote, called := check{name: "writes of former leaders"}, check{name: "calls of former leaders"}
	successors, calls := 0, 0
	for _, s := range r.stopped {
		for _, w := range writesSince(writes, s.resume, func(by string) bool { return by == s.process }) {
			wrote.violations = append(wrote.violations, violation{object: s.process, lane: noLane, evidence: fmt.Sprintf(
				"%s, %s after it was resumed at %s, when another one had its Lease", w.what, w.at.Sub(s.resume).Round(time.Millisecond), clock(s.resume))})
		}
		successors += len(writesSince(writes, s.at, r.isReplicaBut(s.process))) - len(writesSince(writes, s.resume, r.isReplicaBut(s.process)))
		if r.system == nil {
			continue
		}
		if n := r.system.front.since(s.pid, s.resume); n > 0 {
			called.violations = append(called.violations, violation{object: s.process, lane: noLane, evidence: fmt.Sprintf(
				"%d calls of the external system after it was resumed at %s, when another one had its Lease", n, clock(s.resume))})
		}
	}
	wrote.seen = fmt.Sprintf("%d by %d that were stopped and resumed; %d by their successors meanwhile", len(wrote.violations), len(r.stopped), successors)
	all := []check{wrote}
	if r.system != nil {
		calls = r.system.front.all()
		called.seen = fmt.Sprintf("%d by %d; %d calls of all, %d of them by a process that is not known", len(called.violations), len(r.stopped), calls, r.system.front.unknown())
		all = append(all, called)
	}
	return append(all, r.handovers(writes)...), nil
}

func (r *replicas) isReplicaBut(process string) func(string) bool {
	return func(by string) bool { return strings.HasPrefix(by, replicaPrefix) && by != process }
}

// handovers returns how long it was from each end of a leader to the first write of another one.
func (r *replicas) handovers(writes []write) []check {
	took := map[string][]string{}
	for _, c := range r.changes {
		if next := writesSince(writes, c.at, r.isReplicaBut(c.from)); len(next) > 0 {
			took[c.why] = append(took[c.why], fmt.Sprintf("%.1f s", next[0].at.Sub(c.at).Seconds()))
		}
	}
	var all []check
	for _, why := range []string{"SIGTERM", "SIGKILL", "SIGSTOP"} {
		if len(took[why]) > 0 {
			all = append(all, figure(why+" of a leader to the next write", "%s", strings.Join(took[why], ", ")))
		}
	}
	return append(all, figure("API server frozen", "for %.0f s", r.frozen.Seconds()))
}

// replicaPrefix begins the names of the processes of replicas.
const replicaPrefix = "replica-"

// newOperators returns the replicas. They are not started.
func (s *soaking) newOperators(binary string, log io.Writer) (all []*operator) {
	for i := range s.replicas {
		o := newOperator(binary, []string{"KUBECONFIG=" + s.kubeconfig()}, newLogScan(log))
		if s.system != nil {
			o.always = s.system.args
		}
		if s.replicas > 1 {
			o.name = replicaPrefix + string(rune('a'+i))
			o.always = append(slices.Clone(o.always), "--leader-elect", "--leader-election-namespace="+s.home())
		}
		all = append(all, o)
	}
	return all
}

// killed returns how often replicas were killed.
func (s *soaking) killed() (n int) {
	for _, o := range s.operators {
		n += o.killed()
	}
	return n
}

// residentMemory returns that of the largest replica.
func (s *soaking) residentMemory() (most int64) {
	for _, o := range s.operators {
		most = max(most, o.memory())
	}
	return most
}

// killAll kills all replicas, and returns where the next ones serve their metrics.
func (s *soaking) killAll(ctx context.Context) (metrics []string, err error) {
	for _, o := range s.operators {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		if err := o.kill(ctx, 0, "--metrics-bind-address", address); err != nil {
			return nil, err
		}
		metrics = append(metrics, address)
	}
	return metrics, nil
}

func (s *soaking) ends() (all []violation) {
	for _, o := range s.operators {
		all = append(all, o.ends()...)
	}
	return all
}
