// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/references"
	"github.com/ctrlkit/ctrlkit/internal/refusal"
	"github.com/ctrlkit/ctrlkit/internal/track"
)

// EnsureChild makes an object in the cluster as child describes it, owned by req.Object, with a
// controller reference:
//
//	secret := &corev1.Secret{
//		ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-password"}, Data: data,
//	}
//	return ctrlkit.RequeueIfError(step.EnsureChild(ctx, req, secret))
//
// How it does that:
//
//   - Child has a name. Its namespace is that of req.Object unless it has another.
//   - It is applied on the server side, with the engine as the field owner: what child does not
//     set is left to others, and what it does not set any more is removed. What its type encodes
//     although it is zero counts as set. Its status is not written.
//   - Nothing is written if the cache shows that nothing would change. A cache that drops the
//     managed fields never shows that, and each call is a no-op write.
//   - Afterwards child is the object as it is in the cluster.
//   - An object of that name that req.Object does not control is left alone: the error is
//     terminal, and names the controller.
//   - Of a union, such as the strategies of a Deployment or the sources of a volume, the member that
//     child has replaces the one that the object has. Nothing is ever deleted to be created again: a
//     change of a field that is immutable is a terminal error, with a remedy.
//   - An object that is being deleted, or that a predecessor of req.Object has left to the garbage
//     collector, is waited for.
//   - Before an object is created, Request.APIReader is asked whether it exists: the cache may not
//     have it yet.
func EnsureChild[T client.Object](ctx context.Context, req *Request[T], child client.Object) error {
	c := &childOf{owner: req.Object, client: req.Client, live: req.APIReader, manager: cmp.Or(req.owner, defaultOwner)}
	return c.ensure(ctx, child)
}

// onlyCreate is the resource version with which an object is created. No object has it: the API
// server ignores it if there is no such object, and answers with a conflict if there is one.
// Without it, an object that another client has created meanwhile would be taken over.
const onlyCreate = "1"

// unseenRetry is how often an object of another owner is read again that the cache does not have, and
// may never have, because it selects: no event reports that it is gone.
const unseenRetry = 5 * time.Minute

// defaultOwner is the field owner of requests that no engine has made.
const defaultOwner = "ctrlkit"

// A childOf is one call of EnsureChild.
type childOf struct {
	owner   client.Object
	client  client.Client
	live    client.Reader
	manager string

	key    client.ObjectKey
	name   string // "Secret default/db"
	unseen bool   // the cache does not have the object that exists
}

func (c *childOf) ensure(ctx context.Context, child client.Object) error {
	wanted, err := c.configuration(child)
	if err != nil {
		return failure.Mark(err, failure.WithClass(failure.ClassTerminal))
	}
	current, err := c.find(ctx, child)
	if err != nil {
		return err
	}
	if current == nil {
		wanted.SetResourceVersion(onlyCreate)
	} else {
		if err := c.mayWrite(current); err != nil {
			return err
		}
		if unchanged(wanted, current, c.manager) {
			take(child, current)
			return nil
		}
		wanted.SetUID(current.GetUID()) // or it would be created again if it is gone
	}
	if wanted, err = c.write(ctx, wanted, current); err != nil {
		return err
	}
	answer := track.EmptyOf(child).(client.Object) //nolint:errcheck // of the same type
	if err := fromUnstructured(wanted, answer); err != nil {
		return fmt.Errorf("reading the answer for %s: %w", c.name, err)
	}
	take(child, answer)
	return nil
}

// write applies what is wanted, and returns the answer. A member of a union that the current object
// has instead of the one that is wanted is removed.
func (c *childOf) write(ctx context.Context, wanted *unstructured.Unstructured, current client.Object) (*unstructured.Unstructured, error) {
	answer, err := c.apply(ctx, wanted.Object, current)
	if current == nil || !apierrors.IsInvalid(err) {
		return answer, c.explained(err, wanted, nil)
	}
	live, convErr := contentOf(current)
	if convErr != nil {
		return nil, err
	}
	if fields := refusal.Others(c.client.Scheme(), wanted.GroupVersionKind(), wanted.Object, live); len(fields) > 0 {
		taken, takeErr := c.takeOver(ctx, wanted, current, fields)
		if takeErr != nil {
			return nil, takeErr
		}
		if taken {
			answer, err = c.apply(ctx, wanted.Object, current)
		}
	}
	return answer, c.explained(err, wanted, live)
}

// takeOver makes fields of others ours, so that they are removed when we apply without them. It
// reports whether they were not ours.
func (c *childOf) takeOver(ctx context.Context, wanted *unstructured.Unstructured, current client.Object, fields []fieldpath.Path) (bool, error) {
	if c.live != nil { // the cache may have dropped the entries of others
		current = track.EmptyOf(current).(client.Object) //nolint:errcheck // of the same type
		if err := c.live.Get(ctx, c.key, current); err != nil {
			return false, fmt.Errorf("reading %s, to change it: %w", c.name, err)
		}
	}
	patch, _, err := refusal.TakeOver(current, wanted.GetAPIVersion(), c.manager, fields)
	if err != nil || patch == nil {
		return false, err
	}
	target := track.EmptyOf(current).(client.Object) //nolint:errcheck // of the same type
	target.SetNamespace(c.key.Namespace)
	target.SetName(c.key.Name)
	if err := c.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return false, fmt.Errorf("taking fields of %s over: %w", c.name, err)
	}
	return true, nil
}

func (c *childOf) apply(ctx context.Context, content map[string]any, current client.Object) (*unstructured.Unstructured, error) {
	answer := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	options := []client.ApplyOption{client.FieldOwner(c.manager)}
	if current != nil {
		options = append(options, client.ForceOwnership)
	}
	if err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), options...); err != nil {
		return nil, fmt.Errorf("applying %s: %w", c.name, err)
	}
	return answer, nil
}

// explained marks a refusal that no retry ends with a remedy.
func (c *childOf) explained(err error, wanted *unstructured.Unstructured, live map[string]any) error {
	kind := wanted.GroupVersionKind().GroupKind()
	if twice := refusal.Duplicates(err); twice != nil {
		return failure.Mark(fmt.Errorf("applying %s: %w", c.name, twice), failure.WithClass(failure.ClassInvalid), failure.WithRemedy(refusal.RemedyDuplicates))
	}
	if live == nil || !refusal.Immutable(err, kind, c.key.Name) {
		return err
	}
	r := refusal.ReplacementOf(kind, c.key, wanted.Object, live)
	return failure.Mark(err, failure.WithClass(failure.ClassTerminal), failure.WithReason(ReasonImmutableField), failure.WithRemedy(r.Remedy()))
}

// configuration returns child as it is applied: with its kind and its controller, without what it
// does not set.
func (c *childOf) configuration(child client.Object) (*unstructured.Unstructured, error) {
	gvk, err := c.client.GroupVersionKindFor(child)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", child, err)
	}
	c.key = references.InNamespaceOf(c.owner, client.ObjectKeyFromObject(child), namespaced(c.client, child))
	c.name = nameOf(c.client, child, c.key)
	if c.key.Name == "" {
		return nil, fmt.Errorf("a %s without a name can't be ensured: a name that is generated would be another one each time", gvk.Kind)
	}
	if is, err := c.client.IsObjectNamespaced(child); err == nil && is && c.key.Namespace == "" {
		return nil, fmt.Errorf("%s has no namespace, and its owner is in none: set the namespace of the child", c.name)
	}
	own := child.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	own.SetNamespace(c.key.Namespace)
	own.SetManagedFields(nil)
	own.SetResourceVersion("")
	own.SetUID("")
	own.SetGeneration(0)
	if err := controllerutil.SetControllerReference(c.owner, own, c.client.Scheme()); err != nil {
		return nil, fmt.Errorf("owning %s: %w", c.name, err)
	}
	unfold(own)
	content, err := contentOf(own)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", c.name, err)
	}
	wanted := &unstructured.Unstructured{Object: content}
	wanted.SetGroupVersionKind(gvk)
	delete(content, "status")
	prune(content)
	if _, ok := own.(*corev1.Service); ok {
		pruneTargetPorts(content)
	}
	return wanted, nil
}

// prune removes what is null, such as the creation timestamp of a template: to apply it would set
// it.
func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for _, field := range value {
			prune(field)
		}
	case []any:
		for _, item := range value {
			prune(item)
		}
	}
}

// unfold makes what a Secret is only written with what it is read with.
func unfold(obj client.Object) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = make(map[string][]byte)
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

// pruneTargetPorts removes the zero that the type of a Service encodes for a target port that is
// left to its default.
func pruneTargetPorts(service map[string]any) {
	ports, _, _ := unstructured.NestedSlice(service, "spec", "ports")
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok && fields["targetPort"] == int64(0) {
			delete(fields, "targetPort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(service, ports, "spec", "ports") // it was read from there
	}
}

// find returns the object as the cache has it, or as the API server has it, nil if there is none.
func (c *childOf) find(ctx context.Context, child client.Object) (client.Object, error) {
	current := track.EmptyOf(child).(client.Object) //nolint:errcheck // of the same type
	err := c.client.Get(ctx, c.key, current)
	if apierrors.IsNotFound(err) && c.live != nil {
		err = c.live.Get(ctx, c.key, current)
		c.unseen = err == nil
	}
	switch {
	case err == nil:
		return current, nil
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	default:
		return nil, fmt.Errorf("reading %s: %w", c.name, err)
	}
}

// mayWrite returns an error if an object belongs to another owner, and a wait if it is being
// deleted.
func (c *childOf) mayWrite(current client.Object) error {
	controller := metav1.GetControllerOf(current)
	ours := metav1.IsControlledBy(current, c.owner)
	if !current.GetDeletionTimestamp().IsZero() || !ours && c.isPredecessor(controller) {
		_, wait := ctrlkit.PollFor(c.name+" to be gone", requeueGone)
		return wait
	}
	if ours {
		return nil
	}
	by, remedy := "has no controller", "delete it if it is not needed, or have the "+c.kind()+" use another name"+c.giving(current)
	if controller != nil {
		by = "is controlled by " + controller.Kind + " " + controller.Name
		remedy = "delete it if it is not needed, or have the " + c.kind() + " use another name"
	}
	marks := []failure.Option{
		failure.WithClass(failure.ClassTerminal), failure.WithSeverity(condition.SeverityError), failure.WithReason(ReasonOwnedByAnother),
		failure.WithRemedy(remedy),
	}
	if c.unseen {
		marks = append(marks, failure.WithRetryAfter(unseenRetry))
	}
	return failure.Mark(fmt.Errorf("%s exists, %s and is not ours", c.name, by), marks...)
}

// giving returns the command that makes the owner the controller of an object that has none.
func (c *childOf) giving(current client.Object) string {
	gvk, err := c.client.GroupVersionKindFor(c.owner)
	if err != nil || c.owner.GetUID() == "" {
		return ""
	}
	kind, _, _ := strings.Cut(c.name, " ")
	namespace := ""
	if c.key.Namespace != "" {
		namespace = " -n " + c.key.Namespace
	}
	owners := append(slices.Clone(current.GetOwnerReferences()), *metav1.NewControllerRef(c.owner, gvk))
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}}) //nolint:errcheck // owner references have JSON
	return fmt.Sprintf(", or give it to the %s, which changes it, and with which it is deleted: kubectl%s patch %s %s --type merge -p '%s'",
		gvk.Kind, namespace, strings.ToLower(kind), c.key.Name, patch)
}

// isPredecessor reports whether a controller is an object of the name of ours that was there
// before it.
func (c *childOf) isPredecessor(controller *metav1.OwnerReference) bool {
	gvk, err := c.client.GroupVersionKindFor(c.owner)
	return err == nil && controller != nil && controller.Kind == gvk.Kind && track.GroupOf(controller.APIVersion) == gvk.Group && controller.Name == c.owner.GetName()
}

func (c *childOf) kind() string {
	if gvk, err := c.client.GroupVersionKindFor(c.owner); err == nil {
		return gvk.Kind
	}
	return "object"
}

// take makes target what source is, which is of the same type.
func take(target, source client.Object) {
	reflect.ValueOf(target).Elem().Set(reflect.ValueOf(source).Elem())
}

func contentOf(obj client.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	content := make(map[string]any)
	return content, json.Unmarshal(data, &content)
}

func fromUnstructured(u *unstructured.Unstructured, obj client.Object) error {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, obj)
}

// unchanged reports whether to apply wanted would change nothing: current has all of it, and what
// the manager has set besides is in it. If it is not known, it would.
func unchanged(wanted *unstructured.Unstructured, current client.Object, manager string) bool {
	content, err := contentOf(current)
	if err != nil || !contains(content, without(wanted.Object, "apiVersion", "kind")) {
		return false
	}
	for _, entry := range current.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) == nil && sets(wanted.Object, owned)
	}
	return false
}

func without(content map[string]any, keys ...string) map[string]any {
	rest := maps.Clone(content)
	maps.DeleteFunc(rest, func(key string, _ any) bool { return slices.Contains(keys, key) })
	return rest
}

// contains reports whether a value has all that is wanted of it. Elements of a list are compared
// with those at the same place, and empty values are everywhere.
func contains(value, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		if !ok && value != nil {
			return false
		}
		for key, w := range wanted {
			if !contains(fields[key], w) {
				return false
			}
		}
		return true
	case []any:
		items, _ := value.([]any)
		if len(items) != len(wanted) {
			return false
		}
		for i, w := range wanted {
			if !contains(items[i], w) {
				return false
			}
		}
		return true
	case nil:
		return true
	default:
		return value == wanted || value == nil && reflect.ValueOf(wanted).IsZero()
	}
}

// sets reports whether a value sets all fields of a set that the API server keeps of a field
// manager. What can't be found out it takes for a no.
func sets(value any, owned map[string]any) bool {
	for name, below := range owned {
		next, _ := below.(map[string]any)
		kind, text, _ := strings.Cut(name, ":")
		var found bool
		switch kind {
		case ".":
			continue
		case "f":
			fields, _ := value.(map[string]any)
			var field any
			if field, found = fields[text]; found {
				found = sets(field, next)
			}
		case "k":
			found = setsItem(value, text, next)
		case "v":
			var wanted any
			items, _ := value.([]any)
			found = json.Unmarshal([]byte(text), &wanted) == nil && slices.ContainsFunc(items, func(item any) bool { return reflect.DeepEqual(item, wanted) })
		}
		if !found {
			return false
		}
	}
	return true
}

// setsItem reports whether a list has an item of these keys that sets the fields. Keys that the
// item leaves to their defaults may have any value.
func setsItem(list any, keys string, owned map[string]any) bool {
	var wanted map[string]any
	items, _ := list.([]any)
	if json.Unmarshal([]byte(keys), &wanted) != nil {
		return false
	}
	return slices.ContainsFunc(items, func(item any) bool {
		fields, ok := item.(map[string]any)
		for key, w := range wanted {
			if have, is := fields[key]; is && !reflect.DeepEqual(have, w) {
				return false
			}
		}
		// A default that is part of a key is owned as well.
		return ok && sets(fields, without(owned, defaults(fields, wanted)...))
	})
}

// defaults returns the names of the keys that an item does not set.
func defaults(item, keys map[string]any) []string {
	var names []string
	for key := range keys {
		if _, ok := item[key]; !ok {
			names = append(names, "f:"+key)
		}
	}
	return names
}
