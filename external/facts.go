// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/policy"
)

// facts are what a knowledge was gathered from, for what is done and said.
type facts struct {
	knowledge knowledge
	claim     *claim        // of the resource, as it was read; nil if there is none, or if it is ours and was not read
	other     client.Object // which the system shows as the owner, or which has the claim, if it exists
	doubt     error         // why nothing shows whether the holder of the claim exists
}

// A survey gathers, once in a reconcile, what whose the resource is depends on.
type survey[T client.Object] struct{ *session[T] }

// know gathers what whose the resource is depends on. Live reads the claim in any case: before a
// deletion, and when it has changed. Otherwise our own is known, and one that is about to be created shows
// whether there was one.
func (s survey[T]) know(ctx context.Context, live bool) (facts, error) {
	obj, allowed := s.req.Object, PolicyOf(s.req)
	f := facts{knowledge: knowledge{
		stores: s.options.StoresOwner, chosen: s.options.Identity.class.chosen(), resource: s.presence(), id: s.source(), edited: s.edited(), recorded: s.recorded(),
		gives: gaveTo(obj) != "", creates: allowed.Allows(policy.VerbCreate), manages: allowed.Allows(policy.VerbUpdate),
	}}
	k := &f.knowledge
	if !k.stores && s.id != "" {
		if err := s.readClaim(ctx, &f, live || k.resource == isThere || k.id == idWished); err != nil {
			return f, err
		}
	}
	if k.resource == isThere {
		if err := s.readOwner(ctx, &f); err != nil {
			return f, err
		}
	}
	switch {
	case k.mine(), k.id == idProven, k.resource != isThere && k.id != idWished, k.claim == claimLiving, k.owner == ownerLiving:
		return f, nil // no right is needed, or none would help
	}
	var err error
	k.right, err = s.mayAdopt(ctx)
	return f, err
}

// presence says whether the resource is there.
func (s survey[T]) presence() presence {
	switch {
	case s.seen.exists():
		return isThere
	case s.recent() || !s.req.Object.GetDeletionTimestamp().IsZero() && lagging(s.session):
		return isUnseen
	}
	return isAbsent
}

// source says how the object has come to the id.
func (s survey[T]) source() source {
	class := s.options.Identity.class
	switch {
	case s.id == "":
		return idUnknown
	case !class.chosen() && (s.found || s.memory.get(s.req.Object.GetUID()).proven == s.id):
		return idProven
	case class.chosen() && class.names(s.req.Object, s.id) && (IDOf(s.req.Object) == "" || s.record.step != ""):
		return idNamed // by a person alone, the annotation would have no record beside it
	}
	return idWished
}

// edited reports whether the object has another resource than the one that its annotation names.
func (s survey[T]) edited() bool {
	uid := s.req.Object.GetUID()
	if h := s.claims.of(uid); h != nil && !s.options.StoresOwner {
		return s.id != "" && h.resourceKey != s.key()
	}
	if proven := s.memory.get(uid).proven; proven != "" && s.options.StoresOwner {
		return s.id != "" && proven != s.id
	}
	r := s.record
	return s.options.StoresOwner && s.id != "" && r.of != "" && r.of != fingerprint(s.id) && (r.uid == "" || r.uid == string(uid))
}

// recorded reports whether the annotations, or what this process knows, say that the resource was made for
// the object. It is a hint.
func (s survey[T]) recorded() bool {
	chosen := s.options.Identity.class.chosen()
	says := func(r record) bool {
		return (r.step == created || chosen && r.step == begun) && r.isOf(s.req.Object, s.id)
	}
	witness := !s.seen.exists() && s.record.step == "" && s.req.WasClaimed() // another client has removed the record
	return says(s.record) || says(s.before) || witness
}

// readClaim finds out who has the claim.
func (s survey[T]) readClaim(ctx context.Context, f *facts, live bool) error {
	k, r := &f.knowledge, s.registrar()
	own := s.req.Object.GetUID()
	h := r.of(own)
	remembered := h != nil && h.resourceKey == s.key()
	switch {
	case remembered && !h.given && s.req.Object.GetDeletionTimestamp().IsZero():
		k.claim = claimMine // confirm reads it before anything follows from that
		return nil
	case h == nil && !live:
		return nil // to create it shows whether there is one
	}
	var err error
	if f.claim, err = r.get(ctx, s.key()); err != nil {
		return err
	}
	if remembered && (f.claim == nil || f.claim.uid != own) {
		r.forget(own)
	}
	if f.claim == nil {
		return nil
	}
	c := f.claim
	if c.uid == own {
		k.claim = claimMine
		r.remember(c)
		return nil
	}
	k.consent = c.givenTo == string(own) && c.ending.IsZero()
	if f.other, f.doubt = s.holderOf(ctx, c.holder); f.other != nil || f.doubt != nil {
		k.claim = claimLiving
		return nil
	}
	k.claim = claimGone
	if h := holderFrom(s.req.Object, s.kindOf(s.req.Object)); h.kind == c.kind() && h.key() == c.key() {
		k.claim = claimFormer
	}
	s.readWord(k, string(c.uid), k.claim == claimFormer)
	return nil
}

// kind returns the kind of the holder.
func (c *claim) kind() schema.GroupKind { return c.holder.kind }

// readOwner finds out whom the system shows as the owner.
func (s survey[T]) readOwner(ctx context.Context, f *facts) error {
	k, owner, own := &f.knowledge, s.seen.Owner, OwnerOf(s.req.Object)
	shown := s.seen.State == UpToDate || s.seen.State == Drifted // not all clients report the owner in other states
	switch {
	case owner == own:
		k.owner = ownerMine
	case owner == "" && k.stores && !shown && s.memory.get(s.req.Object.GetUID()).proven == s.id:
		k.owner = ownerMine // it was shown before
	case owner == "" && k.stores && shown:
		k.owner = ownerNone
		if s.req.Object.GetAnnotations()[adoptFromAnnotation] == noOwner {
			k.word = wordNobody
		}
	case owner == "":
	case f.claim != nil && (owner == string(f.claim.uid) || owner == f.claim.from):
		k.owner = ownerFormer
	case k.claim == claimMine:
		return s.readFormerOwner(ctx, f)
	default:
		return s.readOtherOwner(ctx, f)
	}
	return nil
}

// readFormerOwner finds out whether the resource was adopted from the owner that the system shows: it may
// keep the first one.
func (s survey[T]) readFormerOwner(ctx context.Context, f *facts) error {
	k := &f.knowledge
	from := s.memory.get(s.req.Object.GetUID()).from
	if from == "" {
		c, err := s.registrar().get(ctx, s.key())
		if err != nil {
			return err
		}
		if c != nil {
			from = c.from
			s.memory.change(s.req.Object.GetUID(), func(a *attempt) { a.from = from })
		}
	}
	if from == s.seen.Owner {
		k.owner = ownerFormer
		return nil
	}
	return s.readOtherOwner(ctx, f)
}

// readOtherOwner finds out whether another owner that the system shows exists, and gives the resource away.
func (s survey[T]) readOtherOwner(ctx context.Context, f *facts) (err error) {
	k, owner := &f.knowledge, s.seen.Owner
	k.owner = ownerOther
	s.readWord(k, owner, s.record.uid == owner)
	// A cache may not have seen the owner yet, or not show it.
	if f.other, err = s.living(ctx, owner, false); err == nil && f.other == nil && k.word != wordNone && s.req.APIReader != nil {
		f.other, err = s.living(ctx, owner, true)
	}
	if err != nil || f.other == nil {
		return err
	}
	k.owner = ownerLiving
	k.consent = k.claim == claimNone && f.other.GetAnnotations()[giveToAnnotation] == OwnerOf(s.req.Object)
	return nil
}

// readWord reads adoptFromAnnotation as a word about an owner that is gone.
func (s survey[T]) readWord(k *knowledge, owner string, former bool) {
	if from := s.req.Object.GetAnnotations()[adoptFromAnnotation]; from != "" && from == owner || from == formerOwner && former {
		k.word = wordOwner
	}
}

// holderOf returns the holder of a claim if it exists. The error says why that is not known.
func (s survey[T]) holderOf(ctx context.Context, h holder) (client.Object, error) {
	if s.req.APIReader == nil {
		return nil, fmt.Errorf("the engine has no APIReader to ask for %s %s", h.kind.Kind, h.key())
	}
	mapping, err := s.req.Client.RESTMapper().RESTMapping(h.kind)
	if err != nil {
		return nil, err
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = s.req.APIReader.Get(track.WithOwn(ctx), h.key(), obj) // it is asked again
	if apierrors.IsNotFound(err) || err == nil && obj.GetUID() != h.uid {
		return nil, nil
	}
	return obj, err
}

// living returns the object of a kind whose objects have resources of the type that has a UID, nil
// if there is none. Live asks the API server.
func (s survey[T]) living(ctx context.Context, uid string, live bool) (client.Object, error) {
	for _, kind := range append([]client.Object{s.req.Object}, s.options.SharedWith...) {
		obj, err := s.livingOf(ctx, kind, types.UID(uid), live)
		if err != nil || obj != nil {
			return obj, err
		}
	}
	return nil, nil
}

// livingOf returns the object of a kind that has a UID, nil if there is none.
func (s survey[T]) livingOf(ctx context.Context, kind client.Object, uid types.UID, live bool) (client.Object, error) {
	var all []client.Object
	var err error
	if live {
		all, err = references.ListMetadata(ctx, s.req.APIReader, s.req.Client, kind)
	} else {
		all, err = references.List(ctx, s.req.Client, kind)
	}
	if apierrors.IsForbidden(err) {
		return nil, remediable(fmt.Errorf("looking for the owner of the resource: %w", err),
			"allow the operator to list these objects in all namespaces, or remove the annotation "+adoptFromAnnotation)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the owner of the resource: %w", err)
	}
	i := slices.IndexFunc(all, func(obj client.Object) bool { return obj.GetUID() == uid })
	if i < 0 {
		return nil, nil
	}
	return all[i], nil
}

// mayAdopt reports whether the object may adopt the resource. Who may edit the object does not decide it.
func (s survey[T]) mayAdopt(ctx context.Context) (bool, error) {
	opened := s.seen.exists() && s.seen.Adoptable
	if name := s.req.Object.GetNamespace(); name != "" && !opened && s.options.Policy.NeedsNamespace(s.req.Object) {
		namespace, reader := &corev1.Namespace{}, client.Reader(s.req.Client)
		if s.req.APIReader != nil {
			reader = s.req.APIReader
		}
		if err := reader.Get(track.WithOwn(ctx), client.ObjectKey{Name: name}, namespace); err != nil { // it is asked again
			return false, fmt.Errorf("reading which ids namespace %s lets its objects adopt: %w", name, err)
		}
		opened = globOf(namespace.Annotations[adoptAnnotation]).MatchString(s.id)
	}
	if s.options.Adopt == nil {
		return opened, nil
	}
	return s.options.Adopt(s.req.Object, s.id, opened), nil
}

// key returns what identifies the resource of the session.
func (s *session[T]) key() resourceKey {
	p := resourceKey{kind: s.claims.kind, id: s.id}
	if s.calls.System != nil {
		p.system = s.calls.System(s.req.Object)
	}
	if s.options.Scope != nil {
		p.scope = s.options.Scope(s.req.Object)
	}
	return p
}

// registrar returns what reads and writes the claims in this reconcile.
func (s *session[T]) registrar() registrar { return s.registrarOf(s.req) }

// kindOf returns the kind of an object.
func (s *session[T]) kindOf(obj client.Object) schema.GroupKind {
	gvk, err := s.req.Client.GroupVersionKindFor(obj)
	if err != nil {
		return schema.GroupKind{} // the engine has read it
	}
	return gvk.GroupKind()
}

// lagging reports whether a resource of a chosen name may exist although it was not seen: its creation
// was begun recently, or may have been in progress when its process ended.
func lagging[T client.Object](s *session[T]) bool {
	a, maybe := s.memory.of(s.req.Object.GetUID(), s.record)
	if !s.options.Identity.class.chosen() || !maybe || s.memory.get(s.req.Object.GetUID()).seen || s.record.step != begun {
		return false
	}
	return time.Since(a.last) < max(s.calls.Deadline, s.options.Visible) || time.Since(s.record.at) < unseen
}
