// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan finds out what an operator would do to a cluster: it runs the operator on a copy of
// the cluster, in memory, makes a change there, and compares.
package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// Source is the cluster that a plan is made for.
type Source interface {
	memory.Source

	// Refused returns what could not be read, with the reasons.
	Refused() map[string]string

	// Lists returns how many requests were made, and how many objects were copied.
	Lists() (requests, objects int)
}

// Options say what to plan.
type Options struct {
	Source     Source
	Operator   trial.Program
	Change     []run.Manifest // to apply; may be empty
	Delete     []Object       // to delete; may be empty
	Namespace  string         // of objects that have none
	Supervisor []string
	Quiet      time.Duration // for how long nothing new must happen until the operator is idle
	Timeout    time.Duration // of each phase
	Outside    bool          // let the operator reach what is outside the cluster
	Webhooks   bool          // ask the admission webhooks of the cluster about each write
	Progress   func(string)
	Log        func(string) // lines of the operator; may be nil

	// Ended is called with the objects that the operator has seen, as they are at the end. It may
	// be nil.
	Ended func([]apiserver.Object)
}

// Object names an object in the cluster.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// ErrEnded is returned if an operator ended by itself.
var ErrEnded = errors.New("the operator ended")

// planner is one copy of the cluster, and what happens to it.
type planner struct {
	Options
	cluster  *memory.Cluster
	recorder *recorder
	guards   *guards
	dir      string
	unknown  []string
	unseen   []string // phases without a sign that the operator has looked at anything

	mu         sync.Mutex // guards what follows
	outside    []string
	unread     []string       // of the guards, and what could not be hidden
	unanswered map[string]int // requests that the copy can't answer, by what they are for
	homeless   string         // the namespace in which a Lease was to be created, if there is none
}

// For returns the plan of an operator.
func For(ctx context.Context, o Options) (_ *Plan, err error) {
	p, err := newPlanner(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	stop, ended, err := p.start(o.Operator)
	if err != nil {
		return nil, err
	}
	defer stop()
	result := &Plan{}
	if err := p.rest(ctx, ended, "before the change"); err != nil {
		return nil, err
	}
	result.AtStart = p.phase()
	if len(o.Change)+len(o.Delete) > 0 {
		if err := p.change(trial.Apply); err != nil {
			return nil, err
		}
		if err := p.rest(ctx, ended, "after the change"); err != nil {
			return nil, err
		}
		result.Changes = p.phase()
	}
	if o.Ended != nil {
		o.Ended(p.cluster.Objects())
	}
	stop()
	p.finish(ctx, result)
	return result, nil
}

// Compare returns what a new version of an operator would do at its start that the old one does not
// do: the cluster is brought to rest by the old one, which is then started again to learn what any
// start does, and then the new one.
func Compare(ctx context.Context, o Options, next trial.Program) (_ *Plan, err error) {
	p, err := newPlanner(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	sample := func(c *memory.Cluster, obj *unstructured.Unstructured, namespace string) error {
		return trial.ApplySample(c, obj, namespace, func(err error) {
			p.Progress(fmt.Sprintf("kubectl apply refuses %s %q: %v; what is unknown is left out", obj.GetKind(), obj.GetName(), err))
		})
	}
	if err := p.change(sample); err != nil {
		return nil, err
	}
	var phases [][]Change
	for i, program := range []trial.Program{o.Operator, o.Operator, next} {
		if err := p.lifetime(ctx, program, []string{"of the old version", "of the old version, started again", "of the new version"}[i]); err != nil {
			return nil, err
		}
		phases = append(phases, p.phase())
	}
	result := &Plan{Changes: without(phases[2], phases[1])}
	p.finish(ctx, result)
	return result, nil
}

// lifetime runs a program until it is idle.
func (p *planner) lifetime(ctx context.Context, program trial.Program, what string) error {
	stop, ended, err := p.start(program)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		trial.ReleaseLeases(p.cluster)
	}()
	return p.rest(ctx, ended, what)
}

// without returns the changes without the fields that others change, too, and without objects of
// which nothing else is left.
func without(changes, usual []Change) []Change {
	known := map[string][]Field{}
	acts := map[string]Action{}
	for _, c := range usual {
		known[c.String()], acts[c.String()] = c.Fields, c.Action
	}
	var out []Change
	for _, c := range changes {
		if c.Action == Update {
			c.Fields = slices.DeleteFunc(c.Fields, func(f Field) bool {
				return slices.ContainsFunc(known[c.String()], func(k Field) bool { return k.Path == f.Path })
			})
			c.Restart = restarts(c)
			if len(c.Fields) == 0 {
				continue
			}
		} else if acts[c.String()] == c.Action {
			continue
		}
		out = append(out, c)
	}
	return out
}

func newPlanner(o Options) (_ *planner, err error) {
	klog.SetLogger(logr.Discard()) // a real API server has a log of its own for what ours would print
	p := &planner{Options: o, recorder: newRecorder(), unanswered: map[string]int{}}
	if !o.Outside {
		if err := supervisor.CanIsolate(); err != nil {
			return nil, fmt.Errorf("the operator can't be kept from reaching what is outside the cluster: %w; --outside lets it", err)
		}
	}
	p.guards, p.unread = newGuards(context.Background(), o)
	if p.cluster, err = memory.Start(memory.Options{
		Source: o.Source, Changed: p.recorder.changed, Asked: p.recorder.asked, Wrap: p.wrap, Admission: p.guards.admit,
	}); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "ctrlkit-plan-"); err != nil {
		return nil, errors.Join(err, p.cluster.Stop())
	}
	return p, nil
}

func (p *planner) close() error { return errors.Join(p.cluster.Stop(), os.RemoveAll(p.dir)) }

// start starts a program on the copy.
func (p *planner) start(program trial.Program) (stop func(), ended *run.Process, err error) {
	p.recorder.started()
	in := trial.Confinement{Supervisor: p.Supervisor, Directory: p.dir, Outside: p.Outside, Refused: p.refusedHost, Visible: p.visible}
	process, release, err := program.Start(p.cluster, in, p.Log)
	if err != nil {
		return nil, nil, err
	}
	return func() { process.Stop(); release() }, process, nil
}

// refusedHost takes a host that the operator has tried to reach.
func (p *planner) refusedHost(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outside = append(p.outside, host)
}

// visible takes a directory that could not be hidden from the operator.
func (p *planner) visible(directory string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	assumed := "the operator uses no files and sockets of this machine in " + directory
	if !slices.Contains(p.unread, assumed) { // of a second start
		p.unread = append(p.unread, assumed)
	}
}

// rest waits until nothing new happens. What is not idle in time is not known.
func (p *planner) rest(ctx context.Context, operator *run.Process, what string) error {
	begun := time.Now()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.cluster.Done():
			return p.cluster.Err()
		case <-operator.Ended():
			return fmt.Errorf("%w %s: %s\n%s", ErrEnded, what, operator.HowItEnded(), strings.Join(operator.Last(20), "\n"))
		case <-ticker.C:
		}
		idle, works := p.recorder.idleFor()
		if idle >= p.Quiet && works == nil && time.Since(begun) >= p.Quiet {
			if !p.recorder.hasWorked() {
				p.unseen = append(p.unseen, fmt.Sprintf("the operator had begun to work %s, although it only listed and watched for %s: one that begins later needs a longer --quiet", what, p.Quiet))
			}
			return nil
		}
		if err := p.cannotLead(); err != nil {
			return err
		}
		if time.Since(begun) >= p.Timeout {
			if works != nil {
				return fmt.Errorf("for %s, %w\n%s", p.Timeout, works, strings.Join(operator.Last(20), "\n"))
			}
			p.unknown = append(p.unknown, fmt.Sprintf("the end: %s, the operator was not idle after %s (--timeout)", what, p.Timeout))
			return nil
		}
		p.Progress(fmt.Sprintf("%s: %d requests, %s without a change", what, p.recorder.count(), idle.Truncate(time.Second)))
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// change makes the change of the plan.
func (p *planner) change(apply func(*memory.Cluster, *unstructured.Unstructured, string) error) error {
	for _, m := range p.Change {
		if err := apply(p.cluster, m.Object, p.Namespace); err != nil {
			return fmt.Errorf("applying %s %q of %s to the copy: %w", m.Object.GetKind(), m.Object.GetName(), m.Where(), err)
		}
	}
	for _, o := range p.Delete {
		if err := trial.Delete(p.cluster, o.Resource, o.Namespace, o.Name); err != nil {
			return fmt.Errorf("deleting %s %q from the copy: %w", o.Resource.Resource, o.Name, err)
		}
	}
	return nil
}

// phase ends a phase and returns what has changed in it.
func (p *planner) phase() []Change {
	byUID, values := map[string]map[string]any{}, new(secrets.Values)
	for _, o := range p.cluster.Objects() {
		byUID[uidOf(o.Content)] = o.Content
		addSecret(values, &unstructured.Unstructured{Object: o.Content})
	}
	ended := p.recorder.next()
	for _, h := range ended {
		if h.last == nil && h.first != nil {
			byUID[uidOf(h.first)] = h.first
		}
	}
	return changesOf(ended, func(uid string) map[string]any { return byUID[uid] }, values)
}

// finish adds what is not about objects.
func (p *planner) finish(ctx context.Context, result *Plan) {
	for what, why := range p.Source.Refused() {
		if forPlayers[what] && !p.recorder.hasAsked(what) {
			result.Assumptions = append(result.Assumptions, "what other controllers do is played without "+what+", which cannot be read")
			continue
		}
		result.Unknown = append(result.Unknown, "cannot read "+what+": "+why)
	}
	result.Unknown = append(result.Unknown, p.unknown...)
	result.Assumptions = append(result.Assumptions, p.unseen...)
	p.mu.Lock()
	result.Outside = slices.Clone(p.outside)
	result.Assumptions = append(result.Assumptions, p.unread...)
	p.mu.Unlock()
	result.Unknown = append(result.Unknown, p.notAnswered()...)
	assumed, unknown := p.guards.report()
	result.Assumptions = append(result.Assumptions, assumed...)
	result.Unknown = append(result.Unknown, unknown...)
	for _, host := range result.Outside {
		result.Unknown = append(result.Unknown, "what "+host+" would have answered: the operator was refused to reach it (--outside)")
	}
	result.Assumptions = append(result.Assumptions, p.assumptions(ctx, result)...)
	slices.Sort(result.Assumptions)
	result.Requests, result.Copied = p.Source.Lists()
	slices.Sort(result.Unknown)
}
