// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
)

// An item is one object that should exist.
type item struct {
	Ref
	gvk     schema.GroupVersionKind
	kind    *kind
	policy  policy
	place   string
	content map[string]any // what is applied, without the hash
	hash    string         // of content
	tracked bool           // it has no owner reference
	noted   bool           // the owner remembers its name, to delete it
	once    *once          // nil without the policy Once
	reopen  bool           // its note has the UID of an object that is gone
	missing bool           // the API server does not have the kind: only Kind, Group, gvk and policy are known
}

// items returns the objects of a set. The error names everything that is wrong with it, which is
// terminal, and the kinds of which the API server did not say whether it has them, which is not.
func (k *keeper) items(set *Set) ([]*item, error) {
	var mistakes, failures []error
	var err error
	k.left = set.left
	if k.runs, err = runsOf(k.owner, k.notes(oncePrefix, k.manager)); err != nil {
		return nil, err
	}
	items := make([]*item, 0, len(set.additions))
	places := make(map[Ref]string, len(set.additions))
	for i := range set.additions {
		a := &set.additions[i]
		it, err := k.item(a)
		switch unknown := (*unknownKindError)(nil); {
		case !errors.As(err, &unknown):
		case meta.IsNoMatchError(unknown.err):
			items = append(items, it)
			continue
		default:
			failures = append(failures, fmt.Errorf("%s, added at %s: %w", a.text(), a.place(), err))
			continue
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s, added at %s: %w", a.text(), a.place(), err))
			continue
		}
		if first, twice := places[it.Ref]; twice {
			mistakes = append(mistakes, fmt.Errorf("%s is added twice: at %s and at %s", it.Ref, first, it.place))
			continue
		}
		places[it.Ref] = it.place
		items = append(items, it)
	}
	if len(mistakes) > 0 {
		failures = append(failures, failure.Terminal(join(mistakes...), reasonWrongSet,
			"this is a bug in the operator: correct the lines that the message names"))
	}
	return items, join(failures...)
}

// An unknownKindError says that the API server did not say whether a kind has namespaces: it may
// not have its definition yet, or may not have answered.
type unknownKindError struct{ err error }

func (e *unknownKindError) Error() string { return "its kind: " + e.err.Error() }
func (e *unknownKindError) Unwrap() error { return e.err }

func (k *keeper) item(a *addition) (*item, error) {
	content, err := contentOf(a.object)
	if err != nil {
		return nil, err
	}
	if err := a.policy.check(); err != nil {
		return nil, err
	}
	if k.loose {
		if err := a.policy.checkLoose(); err != nil {
			return nil, err
		}
	}
	gvk, err := k.gvkOf(a.object, content)
	if err != nil {
		return nil, err
	}
	it := &item{gvk: gvk, policy: a.policy, place: a.place(), content: content}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if gvk.Group == "" && gvk.Kind == "Secret" {
		unfold(content)
	}
	if err := k.locate(it); err != nil {
		it.missing = true
		return it, err
	}
	if err := addInputs(k.client, it); err != nil {
		return nil, err
	}
	if it.policy.has(Once) {
		Replace.apply(&it.policy)
		if err := k.runOnce(it); err != nil {
			return nil, err
		}
	}
	if err := k.claim(it); err != nil {
		return nil, err
	}
	it.hash = witness.Hash(content)
	return it, nil
}

// gvkOf returns the kind of an object: that of its Go type, or the one that it names.
func (k *keeper) gvkOf(object any, content map[string]any) (schema.GroupVersionKind, error) {
	if obj, ok := object.(client.Object); ok {
		gvk, err := k.client.GroupVersionKindFor(obj)
		if err != nil {
			return gvk, fmt.Errorf("its kind: %w: register the type with the scheme of the manager, or set apiVersion and kind", err)
		}
		return gvk, nil
	}
	apiVersion, _ := content["apiVersion"].(string)
	name, _ := content["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, name)
	if gvk.Version == "" || gvk.Kind == "" {
		return gvk, errors.New("it has no apiVersion and kind: make it with the constructor of its apply configuration")
	}
	return gvk, nil
}

// locate finds out the name and the namespace of an item, and how its kind was declared.
func (k *keeper) locate(it *item) error {
	metadata, _ := it.content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		return errors.New("it has no name")
	}
	namespace, _ := metadata["namespace"].(string)
	namespaced, err := k.namespaced(it.gvk)
	switch {
	case err != nil:
		it.Ref = refOf(it.gvk.GroupKind(), client.ObjectKey{Namespace: namespace, Name: name})
		if _, _, undeclared := k.find(k.client, it.gvk); errors.Is(undeclared, errUndeclared) {
			return fmt.Errorf("%w, and the API server does not have it: %w", undeclared, err) // it may be misspelled
		}
		return &unknownKindError{err}
	case !namespaced && namespace != "":
		return fmt.Errorf("it has the namespace %q, but %s is a cluster-scoped kind", namespace, it.gvk.Kind)
	case namespaced && namespace == "":
		if namespace = k.owner.GetNamespace(); namespace == "" {
			return fmt.Errorf("it has no namespace, and neither has its owner, a cluster-scoped %s", k.ownerKind.Kind)
		}
		metadata["namespace"] = namespace
	}
	it.Ref = refOf(it.gvk.GroupKind(), client.ObjectKey{Namespace: namespace, Name: name})
	if k.anyKind && it.Ref == recordRef(k.identity.key) {
		return errors.New("it has the name of the record of the set")
	}
	elsewhere := k.owner.GetNamespace() != "" && namespace != k.owner.GetNamespace()
	it.tracked = k.anyKind || elsewhere || it.policy.tracked()
	declared, gvk, err := k.find(k.client, it.gvk)
	if errors.Is(err, errUndeclared) {
		return fmt.Errorf("%w, so that nothing would report its drift: give %s to apply.Children", err, k.declaration(it, elsewhere))
	}
	if err != nil {
		return err
	}
	it.kind = declared
	if gvk != it.gvk {
		return fmt.Errorf("it is in version %s, and %s is declared in %s: use one version", it.gvk.Version, it.gvk.Kind, gvk.Version)
	}
	keeps := declared.kept && it.policy.has(Keep)
	it.noted = it.tracked && !(keeps && !declared.tracked)
	if it.noted && !declared.tracked || !it.tracked && !declared.owned {
		return fmt.Errorf("%s: give %s to apply.Children", whyTracked(it, elsewhere), k.declaration(it, elsewhere))
	}
	return nil
}

// definition names what an item of a missing kind waits for.
func (it *item) definition() string {
	return fmt.Sprintf("the definition of %s in %s", it.gvk.Kind, it.gvk.GroupVersion())
}

func (k *keeper) declaration(it *item, elsewhere bool) string {
	if it.policy.has(Keep) {
		return "apply.Keeps(&" + it.gvk.Kind + "{})"
	}
	if it.tracked || elsewhere {
		return "apply.Tracks(&" + it.gvk.Kind + "{})"
	}
	return "apply.Owns(&" + it.gvk.Kind + "{})"
}

func whyTracked(it *item, elsewhere bool) string {
	switch {
	case !it.tracked:
		return "it has an owner reference, and its kind is declared as one without"
	case elsewhere && it.Namespace == "":
		return "it is cluster-scoped, so that an owner reference can't name its owner"
	case elsewhere:
		return "it is in another namespace than its owner, so that an owner reference can't name that"
	}
	return "it has no owner reference by its policy, and its kind is declared as one with"
}

// claim gives an item what says whose it is.
func (k *keeper) claim(it *item) error {
	metadata, _ := it.content["metadata"].(map[string]any)
	if k.loose {
		return k.own(metadata)
	}
	if err := put(metadata, "labels", SetLabel, k.label); err != nil {
		return err
	}
	annotations := map[string]string{}
	if it.policy.wave != 0 {
		annotations[waveAnnotation] = strconv.Itoa(it.policy.wave)
	}
	if it.policy.has(Keep) {
		annotations[keepAnnotation] = "true"
	}
	if it.tracked {
		annotations[OwnerAnnotation] = k.identity.annotation()
	} else if err := k.own(metadata); err != nil {
		return err
	}
	for key, value := range annotations {
		if err := put(metadata, "annotations", key, value); err != nil {
			return err
		}
	}
	return nil
}

// contentFor returns what is applied to an object that exists.
func (it *item) contentFor(p *policy) map[string]any {
	if p.has(CreateOnly) {
		return it.claimed() // it becomes ours as it is
	}
	return it.content
}

// claimed returns the content of an item without what its author wants: its name, and whose it is.
func (it *item) claimed() map[string]any {
	metadata, _ := it.content["metadata"].(map[string]any)
	mine := map[string]any{"name": metadata["name"]}
	if labels, _ := metadata["labels"].(map[string]any); labels[SetLabel] != nil {
		mine["labels"] = map[string]any{SetLabel: labels[SetLabel]}
	}
	for _, field := range []string{"namespace", "ownerReferences"} {
		if metadata[field] != nil {
			mine[field] = metadata[field]
		}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	kept := map[string]any{}
	for _, key := range []string{OwnerAnnotation, waveAnnotation, keepAnnotation} {
		if annotations[key] != nil {
			kept[key] = annotations[key]
		}
	}
	mine["annotations"] = kept
	return map[string]any{"apiVersion": it.content["apiVersion"], "kind": it.content["kind"], "metadata": mine}
}

// own adds the reference to the owner.
func (k *keeper) own(metadata map[string]any) error {
	references, _ := metadata["ownerReferences"].([]any)
	for _, r := range references {
		if fields, ok := r.(map[string]any); ok && fields["controller"] == true {
			return fmt.Errorf("it has a controller, %v %v: leave that to the set, or use apply.Unowned", fields["kind"], fields["name"])
		}
	}
	apiVersion, kind := k.ownerKind.ToAPIVersionAndKind()
	metadata["ownerReferences"] = append(references, map[string]any{
		"apiVersion": apiVersion, "kind": kind, "name": k.owner.GetName(), "uid": string(k.owner.GetUID()), "controller": true, "blockOwnerDeletion": true,
	})
	return nil
}

// put sets a label or an annotation that belongs to the set.
func put(metadata map[string]any, field, key, value string) error {
	entries, ok := metadata[field].(map[string]any)
	if !ok {
		if metadata[field] != nil {
			return fmt.Errorf("metadata.%s is no map of strings", field)
		}
		entries = make(map[string]any, 1)
		metadata[field] = entries
	}
	if there, taken := entries[key]; taken && there != value {
		return fmt.Errorf("it has %s in its %s, which the set writes: remove it", key, field)
	}
	entries[key] = value
	return nil
}
