// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// Labels and annotations of claims.
const (
	claimsLabel = "external.ctrlkit.dev/claims" // of all claims of one type of resources
	holderLabel = "external.ctrlkit.dev/holder" // the UID of the holder

	claimSystem  = "external.ctrlkit.dev/system"
	claimScope   = "external.ctrlkit.dev/scope"
	claimType    = "external.ctrlkit.dev/type"
	claimFrom    = "external.ctrlkit.dev/from"
	claimGivenTo = "external.ctrlkit.dev/given-to"
	claimEnding  = "external.ctrlkit.dev/ending"
)

// leaseKind is that of claims. A Lease is known to each API server, needs no scheme, and is what the
// operator may write in its namespace for its leader election.
var leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

// A resourceKey is what identifies a resource among all that an operator knows.
type resourceKey struct {
	system string // Calls.System
	scope  string // Options.Scope: in which ids are unique
	kind   string // Options.Type
	id     string
}

// claimName returns the name of the claim of a resource: two resources have two names, and there can't
// be two claims of one name.
func (p resourceKey) claimName() string {
	sum := sha256.New()
	for _, part := range []string{p.system, p.kind, p.scope, p.id} {
		size := binary.BigEndian.AppendUint64(nil, uint64(len(part)))
		sum.Write(append(size, part...))
	}
	return "external-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:20]))
}

// A holder is an object that has a claim.
type holder struct {
	kind            schema.GroupKind
	namespace, name string
	uid             types.UID
}

// String returns the text of Lease.spec.holderIdentity: "Stream.nats.example.com/shop/orders/8d2e...".
func (h holder) String() string {
	return strings.Join([]string{h.kind.String(), h.namespace, h.name, string(h.uid)}, "/")
}

// holderFrom returns an object of a kind as a holder.
func holderFrom(obj client.Object, kind schema.GroupKind) holder {
	return holder{kind, obj.GetNamespace(), obj.GetName(), obj.GetUID()}
}

// holderOf parses what String returns.
func holderOf(text string) (holder, error) {
	parts := strings.SplitN(text, "/", 4)
	if len(parts) != 4 || parts[3] == "" {
		return holder{}, fmt.Errorf("the holder %q is none that this package has written", text)
	}
	return holder{schema.ParseGroupKind(parts[0]), parts[1], parts[2], types.UID(parts[3])}, nil
}

// key returns where the holder is.
func (h holder) key() client.ObjectKey { return client.ObjectKey{Namespace: h.namespace, Name: h.name} }

// A claim says which object a resource belongs to. It is a Lease in the namespace of the operator,
// named by the resource: that a resource has one owner is the promise of the API server that an object
// has one version, and who may edit objects of users can't write it.
type claim struct {
	resourceKey
	holder
	from    string    // the owner that the system may still show, because the resource was adopted from it
	givenTo string    // the UID of the object that may take the claim
	ending  time.Time // when the deletion of the resource began; zero before that
	since   time.Time // when the holder has got it
	version string    // of the Lease; empty if it is not written
}

// lease returns the object of a claim.
func (c *claim) lease(namespace string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"holderIdentity": c.holder.String(), "acquireTime": c.since.UTC().Format(metav1.RFC3339Micro),
	}}}
	obj.SetGroupVersionKind(leaseKind)
	obj.SetNamespace(namespace)
	obj.SetName(c.claimName())
	obj.SetResourceVersion(c.version)
	obj.SetLabels(map[string]string{claimsLabel: claimsOf(c.resourceKey.kind), holderLabel: labelOf(string(c.uid))})
	annotations := map[string]string{IDAnnotation: c.id, claimType: c.resourceKey.kind}
	ending := ""
	if !c.ending.IsZero() {
		ending = c.ending.UTC().Format(time.RFC3339)
	}
	for key, value := range map[string]string{claimSystem: c.system, claimScope: c.scope, claimFrom: c.from, claimGivenTo: c.givenTo, claimEnding: ending} {
		if value != "" {
			annotations[key] = value
		}
	}
	obj.SetAnnotations(annotations)
	return obj
}

// claimOf reads the object of a claim. One that a person has spoilt is an error: nothing follows from
// it.
func claimOf(obj *unstructured.Unstructured) (*claim, error) {
	get := obj.GetAnnotations()
	c := &claim{
		resourceKey: resourceKey{system: get[claimSystem], scope: get[claimScope], kind: get[claimType], id: get[IDAnnotation]},
		from:        get[claimFrom], givenTo: get[claimGivenTo], version: obj.GetResourceVersion(),
	}
	text, _, _ := unstructured.NestedString(obj.Object, "spec", "holderIdentity")
	since, _, _ := unstructured.NestedString(obj.Object, "spec", "acquireTime")
	var err, badTime, badEnd error
	c.holder, err = holderOf(text)
	c.since, badTime = time.Parse(metav1.RFC3339Micro, since)
	if ending := get[claimEnding]; ending != "" {
		c.ending, badEnd = time.Parse(time.RFC3339, ending)
	}
	if err = errors.Join(err, badTime, badEnd); err == nil && c.claimName() != obj.GetName() {
		err = errors.New("its name is not that of the resource which its annotations name")
	}
	if err != nil {
		return nil, fmt.Errorf("claim %s/%s: %w: restore it from a backup", obj.GetNamespace(), obj.GetName(), err)
	}
	return c, nil
}

// claimsOf returns the value of claimsLabel.
func claimsOf(kind string) string {
	sum := sha256.Sum256([]byte(kind))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}

// labelOf returns a value of a label: the text, or bits of it if it can't be one.
func labelOf(text string) string {
	if len(validation.IsValidLabelValue(text)) > 0 {
		return claimsOf(text)
	}
	return text
}

// ownNamespace returns the namespace of the operator, as leader election finds it; "default" outside of
// a cluster.
func ownNamespace() string {
	const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	if name := os.Getenv("POD_NAMESPACE"); name != "" {
		return name
	}
	text, err := os.ReadFile(serviceAccount)
	if err != nil {
		return "default"
	}
	return cmp.Or(strings.TrimSpace(string(text)), "default")
}

// A ledger has the claims of one type of resources. What it remembers are the claims of the objects
// whose operator it serves, so that an idle object costs no read. They change by this process,
// unless they were given away: those are read live, and so is each before the resource is changed.
// All else is read live.
type ledger struct {
	namespace string
	kind      string // Options.Type, or the kind of the objects

	migration sync.Mutex // for migrated
	migrated  bool       // no annotation counts as a record any more

	mu     sync.Mutex // for all below
	loaded bool
	mine   map[types.UID]*held // by holder
}

// held is what a ledger remembers of a claim.
type held struct {
	resourceKey
	since time.Time
	given bool // it has a givenTo
}

// remember notes a claim that this process has read or written.
func (l *ledger) remember(c *claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mine[c.uid] = &held{c.resourceKey, c.since, c.givenTo != ""}
}

// forget notes that an object has no claim any more.
func (l *ledger) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mine, uid)
}

// of returns what is remembered of the claim of an object, nil if there is none.
func (l *ledger) of(uid types.UID) *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mine[uid]
}

// A registrar reads and writes claims on behalf of one reconcile.
type registrar struct {
	*ledger
	reader client.Reader
	client client.Client
}

// pageOfClaims is how many claims are read at once.
const pageOfClaims = 500

// load reads all claims of the type, once in a process.
func (r registrar) load(ctx context.Context, of client.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded {
		return nil
	}
	if r.kind == "" {
		gvk, err := r.client.GroupVersionKindFor(of)
		if err != nil {
			return err
		}
		r.kind = gvk.GroupKind().String()
	}
	all := make(map[types.UID]*held)
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(leaseKind.GroupVersion().WithKind("LeaseList"))
		err := r.reader.List(track.WithOwn(ctx), list, client.InNamespace(r.namespace), client.MatchingLabels{claimsLabel: claimsOf(r.kind)}, client.Limit(pageOfClaims), client.Continue(next))
		if err != nil {
			return r.failed("reading the claims", err)
		}
		for i := range list.Items {
			if list.Items[i].GetName() == markerName(r.kind) {
				r.migrated = true
			} else if c, err := claimOf(&list.Items[i]); err == nil { // what is spoilt is reported when it is needed
				all[c.uid] = &held{c.resourceKey, c.since, c.givenTo != ""}
			}
		}
		if next = list.GetContinue(); next == "" {
			break
		}
	}
	r.mine, r.loaded = all, true
	return nil
}

// emptyLease returns a Lease without anything, of a type that each scheme has.
func emptyLease() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(leaseKind)
	return obj
}

// get reads the claim of a resource, nil if there is none.
func (r registrar) get(ctx context.Context, p resourceKey) (*claim, error) {
	obj := emptyLease()
	err := r.reader.Get(track.WithOwn(ctx), client.ObjectKey{Namespace: r.namespace, Name: p.claimName()}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, r.failed("reading the claim of the resource", err)
	}
	return claimOf(obj)
}

// create makes a claim. It reports whether it has: another object may have been faster.
func (r registrar) create(ctx context.Context, c *claim) (bool, error) {
	obj := c.lease(r.namespace)
	err := r.client.Create(track.WithOwn(ctx), obj)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, r.failed("claiming the resource", err)
	}
	r.remember(c)
	return true, nil
}

// update changes a claim, unless another client has changed it since it was read.
func (r registrar) update(ctx context.Context, c *claim) error {
	obj := c.lease(r.namespace)
	if err := r.client.Update(track.WithOwn(ctx), obj); err != nil {
		return r.failed("changing the claim of the resource", err)
	}
	c.version = obj.GetResourceVersion()
	r.remember(c)
	return nil
}

// end removes the claim of an object, if it is its own.
func (r registrar) end(ctx context.Context, c *claim) error {
	precondition := client.Preconditions{ResourceVersion: &c.version}
	err := r.client.Delete(track.WithOwn(ctx), c.lease(r.namespace), precondition)
	if client.IgnoreNotFound(err) != nil {
		return r.failed("ending the claim of the resource", err)
	}
	r.forget(c.uid)
	return nil
}

// failed is the error of a request, with the rule to add if that is what is missing.
func (r registrar) failed(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	switch {
	case apierrors.IsForbidden(err):
		return remediable(err, fmt.Sprintf("allow the operator get, list, create, update and delete of leases.coordination.k8s.io in namespace %s", r.namespace))
	case apierrors.IsConflict(err): // to decide again is right
		return failure.Mark(err, failure.WithClass(failure.ClassConflict))
	}
	return err
}
