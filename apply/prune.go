// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A limitError says that more objects have left a set than may be deleted at once.
type limitError struct {
	refs  []Ref
	limit int
}

func (e *limitError) Error() string {
	texts := make([]string, 0, 4)
	for i, ref := range e.refs {
		if i == 3 {
			texts = append(texts, fmt.Sprintf("%d more", len(e.refs)-3))
			break
		}
		texts = append(texts, ref.String())
	}
	return fmt.Sprintf("%d objects have left the set, more than the %d that may be deleted at once (apply.PruneLimit): %s", len(e.refs), e.limit, strings.Join(texts, ", "))
}

// A leftover is an object of ours that is not wanted.
type leftover struct {
	Ref
	object client.Object
	wave   int
}

// prune deletes what has left the set. Nothing is deleted if it can't be found out what has.
func (k *keeper) prune(ctx context.Context, items []*item) ([]Ref, error) {
	wanted := make(map[Ref]bool, len(items))
	for _, it := range items {
		wanted[it.Ref] = true
	}
	leftovers, err := k.leftovers(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("finding what has left the set: %w", err)
	}
	var deletable []leftover
	for _, l := range leftovers {
		if l.object.GetDeletionTimestamp().IsZero() {
			deletable = append(deletable, l)
		}
	}
	if k.pruneLimit >= 0 && len(deletable) > k.pruneLimit {
		return nil, &limitError{refsOf(deletable), k.pruneLimit}
	}
	if err := k.recordLeft(ctx, deletable); err != nil {
		return nil, err
	}
	for _, l := range deletable {
		err = join(err, k.delete(ctx, l.Ref, l.object, metav1.DeletePropagationBackground))
	}
	if err == nil {
		err = k.forgetTracked(ctx, items, leftovers)
	}
	return refsOf(deletable), err
}

func refsOf(leftovers []leftover) []Ref {
	refs := make([]Ref, len(leftovers))
	for i, l := range leftovers {
		refs[i] = l.Ref
	}
	return refs
}

// leftovers returns the objects of the set that are not wanted, and that may be deleted, those of
// the last wave first.
func (k *keeper) leftovers(ctx context.Context, wanted map[Ref]bool) ([]leftover, error) {
	candidates, err := k.candidates(ctx)
	if err != nil {
		return nil, err
	}
	var all []leftover
	seen := make(map[Ref]bool, len(candidates))
	for _, ref := range candidates {
		if wanted[ref] || seen[ref] || slices.Contains(k.left, ref) {
			continue
		}
		seen[ref] = true
		if k.settings.stays(k.client, ref.groupKind()) {
			continue
		}
		obj, err := k.read(ctx, ref)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", ref, err)
		}
		deletable, err := isDeletable(ctx, k, ref, obj)
		switch {
		case err != nil:
			return nil, err
		case !deletable:
			continue
		}
		if kept, err := keeps(obj, k.manager); err != nil || kept {
			continue // an annotation that is not understood keeps it, too
		}
		wave, _ := strconv.Atoi(obj.GetAnnotations()[waveAnnotation]) //nolint:errcheck // 0 if there is none
		all = append(all, leftover{ref, obj, wave})
	}
	slices.SortFunc(all, func(a, b leftover) int {
		return cmp.Or(-cmp.Compare(a.wave, b.wave), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// candidates returns the objects that may be of the set: by the watches of their kinds, or by
// lists if there are no watches, and by what the owner remembers.
func (k *keeper) candidates(ctx context.Context) ([]Ref, error) {
	refs := slices.Collect(maps.Keys(k.remembered))
	if k.watched != nil {
		watched := k.watched // the function is kept while the owner is idle, and k with it if it had k
		for _, label := range k.labels {
			k.dependOn(func() uint64 { return watched.changed(label) })
			refs = append(refs, watched.of(label)...)
		}
		return refs, nil
	}
	for _, kind := range k.kinds {
		gvk, err := k.client.GroupVersionKindFor(kind.object)
		if err != nil {
			return nil, err
		}
		found, err := k.list(ctx, kind, gvk)
		if err != nil {
			return nil, err
		}
		refs = append(refs, found...)
	}
	return refs, nil
}

func (k *keeper) list(ctx context.Context, kind *kind, gvk schema.GroupVersionKind) ([]Ref, error) {
	listKind := gvk
	listKind.Kind += "List"
	var list client.ObjectList
	if _, ok := kind.object.(*unstructured.Unstructured); ok {
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(listKind)
		list = u
	} else {
		typed, err := k.client.Scheme().New(listKind)
		if err != nil {
			return nil, err
		}
		list = typed.(client.ObjectList) //nolint:errcheck // a list is one
	}
	ofSet, err := labels.NewRequirement(SetLabel, selection.In, k.labels)
	if err != nil {
		return nil, err
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*ofSet)}, client.UnsafeDisableDeepCopy}
	if !kind.tracked && !kind.kept {
		options = append(options, client.InNamespace(k.owner.GetNamespace()))
	}
	if err := k.client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	var refs []Ref
	err = meta.EachListItem(list, func(o runtime.Object) error {
		obj, err := meta.Accessor(o)
		if err == nil {
			refs = append(refs, Ref{gvk.Group, gvk.Kind, obj.GetNamespace(), obj.GetName()})
		}
		return err
	})
	return refs, err
}

// read reads an object from the cache of its kind; one of a kind that is not declared any more,
// from the API server.
func (k *keeper) read(ctx context.Context, ref Ref) (client.Object, error) {
	for _, kind := range k.kinds {
		gvk, err := k.client.GroupVersionKindFor(kind.object)
		if err != nil {
			return nil, err
		}
		if gvk.GroupKind() == ref.groupKind() {
			obj := kind.empty(gvk)
			err := k.client.Get(ctx, ref.key(), obj, client.UnsafeDisableDeepCopy)
			if apierrors.IsNotFound(err) && k.live != nil && k.remembered.has(ref) {
				err = k.live.Get(ctx, ref.key(), obj) // it is forgotten only if it is gone
			}
			return obj, err
		}
	}
	if k.live == nil {
		return nil, fmt.Errorf("its kind is not declared: give apply.Formerly(&%s{}) to apply.Children, or set step.Options.APIReader", ref.Kind)
	}
	mapping, err := k.client.RESTMapper().RESTMapping(ref.groupKind())
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	return obj, k.live.Get(ctx, ref.key(), obj)
}
