// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects without an owner reference are found again by their owner: its annotation has their names
// before they are created. Labels would not do for kinds that are not declared any more, and for
// namespaces that the cache does not have.

const trackedPrefix = "tracked.apply.ctrlkit.dev/"

// A note is an annotation of the owner of a set.
type note struct {
	key string
	// shared says that it is that of former versions, whose key did not have the engine: other
	// engines may have notes in it.
	shared bool
}

// notes returns the annotations in which a set may have notes, the present one first.
func (s *settings) notes(prefix, manager string) []note {
	all := []note{{key: annotationOf(prefix, manager+"/"+s.name)}}
	for _, former := range s.former {
		engine, name := splitFormer(former)
		all = append(all, note{key: annotationOf(prefix, cmp.Or(engine, manager)+"/"+name)})
	}
	for _, name := range s.names() {
		all = append(all, note{annotationOf(prefix, name), true})
	}
	return all
}

// annotationOf returns an annotation of the owner of a set.
func annotationOf(prefix, set string) string {
	name := strings.Trim(notInNames.ReplaceAllString(set, "-"), "-_.")
	if name != set || len(validation.IsQualifiedName(name)) > 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(set)) // writing to a hash never fails
		name = fmt.Sprintf("%s%08x", name[:min(len(name), 50)], h.Sum32())
	}
	return prefix + name
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// parseTracked returns the objects that an annotation names.
func parseTracked(text string) ([]Ref, error) {
	if text == "" {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil, err
	}
	refs := make([]Ref, len(names))
	for i, name := range names {
		kind, key, ok := strings.Cut(name, " ")
		if !ok {
			return nil, fmt.Errorf("%q is no kind with a name", name)
		}
		gk := schema.ParseGroupKind(kind)
		refs[i] = Ref{Group: gk.Group, Kind: gk.Kind, Name: key}
		if namespace, rest, ok := strings.Cut(key, "/"); ok {
			refs[i].Namespace, refs[i].Name = namespace, rest
		}
	}
	return refs, nil
}

// formatTracked is the reverse of parseTracked.
func formatTracked(refs []Ref) string {
	if len(refs) == 0 {
		return ""
	}
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.groupKind().String() + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
	}
	slices.Sort(names)
	data, _ := json.Marshal(names) //nolint:errcheck // strings have JSON
	return string(data)
}

// readTracked reads what the owner remembers. In a shared note, only what has our label is ours.
func (k *keeper) readTracked(ctx context.Context) error {
	k.former = map[string]string{}
	for i, n := range k.notes(trackedPrefix, k.manager) {
		text := k.owner.GetAnnotations()[n.key]
		refs, err := parseTracked(text)
		if err != nil {
			return terminal(fmt.Errorf("annotation %s: %w: without it, objects in other namespaces could not be deleted", n.key, err),
				ReasonWrongSet, "restore it, or remove it if no such objects exist")
		}
		var others []Ref
		if n.shared {
			if refs, others, err = k.ours(ctx, refs); err != nil {
				return err
			}
		}
		if rest := formatTracked(others); i > 0 && rest != text {
			k.former[n.key] = rest
		}
		for _, ref := range refs {
			if !slices.Contains(k.remembered, ref) {
				k.remembered = append(k.remembered, ref)
			}
		}
	}
	return nil
}

// ours returns which objects are those of the set, and which are of others. What is gone is neither.
func (k *keeper) ours(ctx context.Context, refs []Ref) (ours, others []Ref, err error) {
	for _, ref := range refs {
		obj, err := k.read(ctx, ref)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, nil, fmt.Errorf("finding out whose %s is: %w", ref, err)
		case slices.Contains(k.labels, obj.GetLabels()[SetLabel]):
			ours = append(ours, ref)
		default:
			others = append(others, ref)
		}
	}
	return ours, others, nil
}

// noteTracked writes to the owner the objects that it does not remember, before they are created.
func (k *keeper) noteTracked(ctx context.Context, items []*item) error {
	all := slices.Clone(k.remembered)
	for _, it := range items {
		if it.noted && !slices.Contains(all, it.Ref) {
			all = append(all, it.Ref)
		}
	}
	return k.rememberAll(ctx, all)
}

// forgetTracked removes from the owner the objects that are neither wanted nor there.
func (k *keeper) forgetTracked(ctx context.Context, items []*item, leftovers []leftover) error {
	var all []Ref
	for _, ref := range k.remembered {
		wanted := slices.ContainsFunc(items, func(it *item) bool { return it.Ref == ref && it.noted })
		if wanted || slices.Contains(k.left, ref) || slices.ContainsFunc(leftovers, func(l leftover) bool { return l.Ref == ref }) {
			all = append(all, ref)
		}
	}
	return k.rememberAll(ctx, all)
}

func (k *keeper) rememberAll(ctx context.Context, refs []Ref) error {
	if len(refs) == len(k.remembered) && len(k.former) == 0 {
		return nil // they only ever grow, or shrink
	}
	key, text := k.notes(trackedPrefix, k.manager)[0].key, formatTracked(refs)
	annotations := maps.Clone(k.owner.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	if annotations[key] = text; len(refs) > len(k.remembered) && apivalidation.ValidateAnnotationsSize(annotations) != nil {
		return terminal(fmt.Errorf("the names of the %d objects without an owner reference, which annotation %s keeps, need %d bytes, and there is room for %d",
			len(refs), key, len(text), apivalidation.TotalAnnotationSizeLimitB), ReasonWrongSet, "have several steps or several owners keep them, or give them shorter names")
	}
	if err := k.remember(ctx, key, text); err != nil {
		return err
	}
	for key, rest := range k.former {
		if err := k.remember(ctx, key, rest); err != nil {
			return err
		}
	}
	k.remembered, k.former = refs, nil
	return nil
}

// cleanUp deletes what the garbage collector does not, and with DeleteInOrder all objects. It
// returns what it waits for; nothing when all are gone.
func (k *keeper) cleanUp(ctx context.Context) (waits string, err error) {
	leftovers, err := k.leftovers(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("finding the objects of the set: %w", err)
	}
	if !k.ordered {
		leftovers = slices.DeleteFunc(leftovers, func(l leftover) bool { return isOwnedBy(l.object, k.owner) })
	}
	if len(leftovers) == 0 {
		return "", nil
	}
	last := leftovers[0].wave
	for _, l := range leftovers {
		if k.ordered && l.wave != last {
			break
		}
		if l.object.GetDeletionTimestamp().IsZero() {
			if err := k.delete(ctx, l.Ref, l.object, metav1.DeletePropagationBackground); err != nil {
				return "", err
			}
		}
	}
	return leftovers[0].String() + " to be gone", nil
}

func isOwnedBy(obj, owner client.Object) bool {
	for _, r := range obj.GetOwnerReferences() {
		if r.UID == owner.GetUID() {
			return true
		}
	}
	return false
}
