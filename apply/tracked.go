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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
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

// A tracked is the objects that an owner has noted, with their UIDs. One without a UID is one whose
// creation may be under way, or that a former version has noted.
type tracked map[Ref]types.UID

// parseTracked returns the objects that an annotation names.
func parseTracked(text string) (tracked, error) {
	if text == "" {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil, err
	}
	all := make(tracked, len(names))
	for _, name := range names {
		kind, key, ok := strings.Cut(name, " ")
		if !ok {
			return nil, fmt.Errorf("%q is no kind with a name", name)
		}
		key, uid, _ := strings.Cut(key, " ")
		gk := schema.ParseGroupKind(kind)
		ref := Ref{Group: gk.Group, Kind: gk.Kind, Name: key}
		if namespace, rest, ok := strings.Cut(key, "/"); ok {
			ref.Namespace, ref.Name = namespace, rest
		}
		all[ref] = types.UID(uid)
	}
	return all, nil
}

// String is the reverse of parseTracked.
func (t tracked) String() string {
	if len(t) == 0 {
		return ""
	}
	names := make([]string, 0, len(t))
	for ref, uid := range t {
		name := ref.groupKind().String() + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
		names = append(names, strings.TrimSuffix(name+" "+string(uid), " "))
	}
	slices.Sort(names)
	data, _ := json.Marshal(names) //nolint:errcheck // strings have JSON
	return string(data)
}

// readTracked reads what the owner remembers. In a shared note, only what has our label is ours.
func (k *keeper) readTracked(ctx context.Context) error {
	k.former, k.remembered = map[string]string{}, tracked{}
	for i, n := range k.notes(trackedPrefix, k.manager) {
		text := k.owner.GetAnnotations()[n.key]
		refs, err := parseTracked(text)
		if err != nil {
			return failure.Terminal(fmt.Errorf("annotation %s: %w: without it, objects in other namespaces could not be deleted", n.key, err),
				reasonWrongSet, "restore it, or remove it if no such objects exist")
		}
		var others tracked
		if n.shared {
			if refs, others, err = k.ours(ctx, refs); err != nil {
				return err
			}
		}
		if rest := others.String(); i > 0 && rest != text {
			k.former[n.key] = rest
		}
		for ref, uid := range refs {
			if !k.remembered.has(ref) {
				k.remembered[ref] = uid
			}
		}
	}
	return nil
}

func (t tracked) has(ref Ref) bool {
	_, noted := t[ref]
	return noted
}

// ours returns which objects are those of the set, and which are of others. An object that is gone
// is neither.
func (k *keeper) ours(ctx context.Context, refs tracked) (ours, others tracked, err error) {
	ours, others = tracked{}, tracked{}
	for ref, uid := range refs {
		obj, err := k.read(ctx, ref)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, nil, fmt.Errorf("finding out whose %s is: %w", ref, err)
		case slices.Contains(k.labels, obj.GetLabels()[SetLabel]):
			ours[ref] = uid
		default:
			others[ref] = uid
		}
	}
	return ours, others, nil
}

// noteTracked writes to the owner the objects that it does not remember, before they are created.
func (k *keeper) noteTracked(ctx context.Context, items []*item) error {
	all := maps.Clone(k.remembered)
	for _, it := range items {
		if it.noted && !k.remembered.has(it.Ref) {
			all[it.Ref] = ""
		}
	}
	if len(all) == len(k.remembered) && len(k.former) == 0 {
		return nil
	}
	return k.rememberAll(ctx, all)
}

// reopenNotes removes the UIDs of objects that are gone from their notes, before they are created
// again, and keeps the objects that waited for that.
func reopenNotes(ctx context.Context, k *keeper, states []*state) error {
	all, waiting := maps.Clone(k.remembered), []*state(nil)
	for _, s := range states {
		if s.item.reopen {
			s.item.reopen, all[s.item.Ref] = false, ""
			waiting = append(waiting, s)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if err := k.rememberAll(ctx, all); err != nil {
		return err
	}
	k.each(ctx, waiting)
	return nil
}

// noteUIDs adds the UIDs of the objects that exist to the notes.
func noteUIDs(k *keeper, states []*state) {
	for _, s := range states {
		if uid, noted := k.remembered[s.item.Ref]; noted && s.uid != "" && uid != s.uid {
			k.remembered[s.item.Ref] = s.uid
			k.unsaved = true
		}
	}
}

// saveNotes writes what noteUIDs has added.
func saveNotes(ctx context.Context, k *keeper) error {
	if !k.unsaved {
		return nil
	}
	return k.rememberAll(ctx, k.remembered)
}

// forgetTracked removes from the owner the objects that are neither wanted nor there.
func (k *keeper) forgetTracked(ctx context.Context, items []*item, leftovers []leftover) error {
	all := tracked{}
	for _, it := range items {
		if uid, noted := k.remembered[it.Ref]; noted && it.noted {
			all[it.Ref] = uid
		}
	}
	for _, ref := range k.left {
		if uid, noted := k.remembered[ref]; noted {
			all[ref] = uid
		}
	}
	for _, l := range leftovers {
		if uid, noted := k.remembered[l.Ref]; noted {
			all[l.Ref] = uid
		}
	}
	if len(all) == len(k.remembered) && len(k.former) == 0 {
		return nil
	}
	return k.rememberAll(ctx, all)
}

func (k *keeper) rememberAll(ctx context.Context, refs tracked) error {
	key, text := k.notes(trackedPrefix, k.manager)[0].key, refs.String()
	annotations := maps.Clone(k.owner.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	fits := func() bool { annotations[key] = text; return apivalidation.ValidateAnnotationsSize(annotations) == nil }
	if !fits() { // the names are enough
		names := maps.Clone(refs)
		for ref := range names {
			names[ref] = ""
		}
		text = names.String()
	}
	if !fits() && len(refs) > len(k.remembered) {
		return failure.Terminal(fmt.Errorf("the names of the %d objects without an owner reference, which annotation %s keeps, need %d bytes, and there is room for %d",
			len(refs), key, len(text), apivalidation.TotalAnnotationSizeLimitB), reasonWrongSet, "have several steps or several owners keep them, or give them shorter names")
	}
	if k.owner.GetAnnotations()[key] != text { // UIDs that do not fit are not tried again and again
		if err := k.remember(ctx, key, text); err != nil {
			return err
		}
	}
	for key, rest := range k.former {
		if err := k.remember(ctx, key, rest); err != nil {
			return err
		}
	}
	k.remembered, k.former, k.unsaved = refs, nil, false
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
