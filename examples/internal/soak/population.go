// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// coWriter is a label that another controller keeps on the objects.
const coWriter = "example.com/co-writer"

// The checks of a population.
const (
	checkExistence = "missing or superfluous objects"
	checkReady     = "Ready"
	checkLabels    = "labels of a co-writer"
)

// Details are the model of what differs between the kinds of objects. An object is known by its
// number.
type details interface {
	// object returns an object as a user creates it now.
	object(i int) client.Object
	// renew changes what the next object of a number will be.
	renew(i int)
	// prepare creates what an object needs.
	prepare(ctx context.Context, i int) error
	// edit plans an edit that k, which is below 100, stands for, and reports false if that is none of
	// its own. Without the object, it edits only what is around it.
	edit(i int, exists bool, k int) (edit, bool)
	// want returns what Ready of an object should be, and problem what is wrong with its status.
	want(i int) readiness
	problem(i int, obj client.Object) string
	// check checks what is around the objects.
	check(ctx context.Context, d *population, found *checks) error
	// checks returns the names of the checks: that of problem, and those of check.
	checks() []string
}

// A lane is what is common to the models of all objects.
type lane struct {
	exists bool
	label  string
}

// A population is the soak of an example whose objects users create, edit and delete.
type population struct {
	details
	kind    string
	list    client.ObjectList
	user    client.Client
	options *options
	random  *rand.Rand
	lanes   []lane // what the cluster should be
}

func newPopulation(user client.Client, o *options, kind string, list client.ObjectList) *population {
	return &population{
		kind: kind, list: list, user: user, options: o, random: newRandom(o.seed, "edits of "+kind),
		lanes: slices.Repeat([]lane{{exists: true}}, o.objects),
	}
}

func name(prefix string, i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%02d", prefix, i)}
}

func (d *population) create(ctx context.Context) error {
	for i := range d.lanes {
		if err := d.prepare(ctx, i); err != nil {
			return err
		}
		if err := create(ctx, d.user, d.object(i)); err != nil {
			return fmt.Errorf("creating %s %d: %w", d.kind, i, err)
		}
	}
	return nil
}

func (d *population) progress() string { return fmt.Sprintf("%d %ss", len(d.lanes), d.kind) }

func (d *population) edits() []edit {
	return planEdits(d.random, len(d.lanes), d.options.chaos, d.options.edits, d.next)
}

func (d *population) next(i int) edit {
	l, k := &d.lanes[i], d.random.IntN(100)
	if e, ok := d.edit(i, l.exists, k); ok {
		return e
	}
	switch {
	case !l.exists:
		*l = lane{exists: true}
		d.renew(i)
		obj := d.object(i)
		return edit{what: "created again", apply: func(ctx context.Context, c client.Client) error { return create(ctx, c, obj) }}
	case k < 80:
		l.label = strconv.Itoa(d.random.IntN(1000))
		return edit{what: "label changed to " + l.label, apply: patching(d.object(i), `{"metadata":{"labels":{%q:%q}}}`, coWriter, l.label)}
	default:
		*l = lane{}
		return edit{what: "deleted", apply: deleting(d.object(i))}
	}
}

// patching and deleting return what an edit does to an object.
func patching(obj client.Object, format string, args ...any) func(context.Context, client.Client) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	return func(ctx context.Context, c client.Client) error { return c.Patch(ctx, obj, patch) }
}

func deleting(obj client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj) }
}

func (d *population) compare(ctx context.Context, steadySince time.Time) ([]check, error) {
	if err := d.user.List(ctx, d.list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the %ss: %w", d.kind, err)
	}
	there := make(map[string]client.Object)
	err := meta.EachListItem(d.list, func(item runtime.Object) error {
		obj := item.(client.Object) //nolint:errcheck // what has a list is an object
		there[obj.GetName()] = obj
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := newChecks(slices.Concat([]string{checkExistence}, d.checks(), []string{checkReady, checkLabels})...)
	existing, ready := 0, 0
	for i, l := range d.lanes {
		key := d.object(i).GetName()
		if l.exists {
			existing++
			if d.want(i).ready {
				ready++
			}
		}
		d.compareObject(found, i, there[key], steadySince)
		delete(there, key)
	}
	for _, key := range slices.Sorted(maps.Keys(there)) {
		found.add(checkExistence, leftover(there[key]))
	}
	if err := d.check(ctx, d, found); err != nil {
		return nil, err
	}
	found.see(checkReady, "%d wrong; True %d of %d, else False for the right reason", found.count(checkReady), ready, existing)
	result := d.checks()[0]
	found.see(result, "%d wrong, of %d", found.count(result), existing)
	return found.all, nil
}

func (d *population) found(to *checks, name string, i int, format string, args ...any) {
	to.add(name, violation{object: d.kind + " " + d.object(i).GetName(), lane: i, evidence: fmt.Sprintf(format, args...)})
}

// compareObject compares one object with the model; obj is nil if there is none.
func (d *population) compareObject(to *checks, i int, obj client.Object, steadySince time.Time) {
	l := d.lanes[i]
	switch {
	case obj == nil && l.exists:
		d.found(to, checkExistence, i, "it does not exist")
		return
	case obj == nil:
		return
	case !l.exists || obj.GetDeletionTimestamp() != nil:
		d.found(to, checkExistence, i, "%s", leftover(obj).evidence)
		return
	}
	conditions, _ := condition.Of(obj) // without any it has no Ready
	if problem := d.want(i).problem(conditions, obj.GetGeneration(), steadySince); problem != "" {
		d.found(to, checkReady, i, "%s", problem)
	}
	if problem := d.problem(i, obj); problem != "" {
		d.found(to, d.checks()[0], i, "%s", problem)
	}
	if got := obj.GetLabels()[coWriter]; got != l.label {
		d.found(to, checkLabels, i, "label %s is %q, want %q", coWriter, got, l.label)
	}
}

// deleteAll deletes the objects. What is around them stays.
func (d *population) deleteAll(ctx context.Context) error {
	clear(d.lanes)
	if err := d.user.DeleteAllOf(ctx, d.object(0), client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting the %ss: %w", d.kind, err)
	}
	return nil
}

// remaining returns what differs from a cluster without the objects.
func (d *population) remaining(ctx context.Context) ([]violation, error) {
	all, err := d.compare(ctx, time.Time{})
	var found []violation
	for _, c := range all {
		found = append(found, c.violations...)
	}
	return found, err
}
