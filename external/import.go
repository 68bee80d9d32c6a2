// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Importer is a [Lister] that knows which object a resource would have.
type Importer[T client.Object] interface {
	Lister
	// Import returns an object with a name, and a spec with which the resource is as it should be:
	// what Observe then reports is UpToDate, but for the owner. [Describe] helps, and its errors are to be
	// returned. Labels may be made of tags of the resource. It changes nothing outside. It is called for
	// several resources at the same time.
	Import(ctx context.Context, r Resource) (T, error)
}

// Errors of [Describe]. What an Importer returns them for is left out.
var (
	errAbsent = errors.New("the resource does not exist") // it was listed before
	errOwned  = errors.New("the resource has an owner")   // which the list did not have
)

// Describe observes a resource, and sets the fields of the spec of obj that are not set, if the
// client is a [LateInitializer].
func Describe[T client.Object](ctx context.Context, c Client[T], obj T, id string) error {
	seen, err := c.Observe(ctx, obj, id)
	if err != nil {
		return err
	}
	switch {
	case seen.State == Absent:
		return errAbsent
	case seen.Owner != "":
		return errOwned
	}
	if late, ok := c.(LateInitializer[T]); ok {
		late.LateInitialize(obj)
	}
	return nil
}

// Import returns manifests of the resources that no object has and no owner is stored with, by
// their scopes and ids. When they are applied, the operator adopts the resources, if it may: each
// has the [IDAnnotation]. What is stored with an owner is left out: it is an orphan, or belongs to
// an object of another cluster.
//
//   - Objects returns all objects whose resources are in the system, as for [Audit].
//   - Want chooses resources before they are read; nil stands for all.
//   - Ten resources are read at the same time.
//   - An error of one resource does not keep the others from being returned.
//   - A name that an object of the system has, or another manifest, gets a suffix.
func Import[T client.Object](ctx context.Context, system Importer[T], objects func(ctx context.Context) ([]Holder, error), want func(Resource) bool) ([]T, error) {
	i := importing[T]{name: "the system", system: system, objects: objects, calls: newCalls(Calls[T]{})}
	found, failed, err := i.run(ctx, want, new(counter))
	if err != nil {
		return nil, err
	}
	taken := make(names, len(i.holders))
	for _, h := range i.holders {
		taken[nameOf(goType(h.Object), h.Object)] = "an object that exists"
	}
	all := make([]T, 0, len(found))
	for _, f := range found {
		if err := taken.give(goType(f.obj), f.obj, i.name, f.from); err != nil {
			failed.add(f.from, err)
			continue
		}
		all = append(all, f.obj.(T)) //nolint:errcheck // run returns no other
	}
	return all, failed.err()
}

// goType identifies kinds where no scheme is known.
func goType(obj client.Object) string { return fmt.Sprintf("%T", obj) }

// importing is the import of one system.
type importing[T client.Object] struct {
	name    string
	system  Importer[T]
	objects func(ctx context.Context) ([]Holder, error)
	calls   *calls[T]
	holders []Holder
}

// imported is the object of a resource.
type imported struct {
	from Resource
	obj  client.Object
}

// counter counts the resources of a system that were read, for who waits.
type counter struct{ done, of atomic.Int64 }

const (
	importsAtOnce = 10 // of one system; more could be a burden
	unanswered    = 5  // calls in a row, after which the rest is not read
)

// atOnce returns how many resources are read at the same time. Those that wait for a rate limit keep
// places before the calls of reconciles: no more than it allows in a second.
func (i *importing[T]) atOnce() int {
	if i.calls.PerSecond <= 0 {
		return importsAtOnce
	}
	return min(importsAtOnce, int(math.Ceil(i.calls.PerSecond)))
}

// run reads the resources that are wanted, and returns their objects in the order of their places.
func (i *importing[T]) run(ctx context.Context, want func(Resource) bool, count *counter) ([]imported, *failures, error) {
	wanted, err := i.wanted(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	count.of.Store(int64(len(wanted)))
	objects, errs := make([]T, len(wanted)), make([]error, len(wanted))
	var silent atomic.Int64 // calls in a row without an answer
	concurrently(i.atOnce(), len(wanted), func(n int) {
		defer count.done.Add(1)
		switch {
		case ctx.Err() != nil:
			errs[n] = context.Cause(ctx)
			return
		case silent.Load() >= unanswered:
			errs[n] = fmt.Errorf("not read, because %d calls in a row were not answered", unanswered)
			return
		}
		errs[n] = i.calls.ask(ctx, i.name, func(ctx context.Context) error {
			return caught(func() (err error) {
				objects[n], err = i.system.Import(ctx, wanted[n])
				return err
			})
		})
		if _, slower := throttled(errs[n]); slower || errors.Is(errs[n], context.DeadlineExceeded) {
			silent.Add(1)
		} else {
			silent.Store(0)
		}
	})
	found, failed := make([]imported, 0, len(wanted)), new(failures)
	for n, r := range wanted {
		switch {
		case errors.Is(errs[n], errAbsent) || errors.Is(errs[n], errOwned):
		case errs[n] != nil:
			failed.add(r, errs[n])
		default:
			annotate(objects[n], IDAnnotation, r.ID)
			label(objects[n], r.Labels)
			found = append(found, imported{r, objects[n]})
		}
	}
	return found, failed, nil
}

// wanted returns the resources without an object and an owner that are wanted.
func (i *importing[T]) wanted(ctx context.Context, want func(Resource) bool) ([]Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, auditsTake)
	defer cancel()
	listed, err := i.system.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the resources: %w", err)
	}
	if i.holders, err = i.objects(ctx); err != nil {
		return nil, fmt.Errorf("listing the objects: %w", err)
	}
	taken := make(map[place]bool, len(i.holders))
	for _, h := range i.holders {
		taken[place{h.Scope, IDOf(h.Object)}] = true
	}
	listed = slices.Clone(listed)
	slices.SortStableFunc(listed, comparePlaces)
	return slices.DeleteFunc(listed, func(r Resource) bool {
		if r.Owner != "" || taken[r.place()] || want != nil && !want(r) {
			return true
		}
		taken[r.place()] = true // a list may have it twice
		return false
	}), nil
}

// label sets labels of an object.
func label(obj client.Object, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	all := obj.GetLabels()
	if all == nil {
		all = make(map[string]string, len(labels))
	}
	maps.Copy(all, labels)
	obj.SetLabels(all)
}
