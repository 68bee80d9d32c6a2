// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/state"
	"github.com/ctrlkit/ctrlkit/step"
)

// A publication is what is published of one object, in one reconcile.
type publication struct {
	client  client.Client
	owner   client.Object
	manager string
	public  []string
	sites   []*site
	values  map[string][]byte
	once    map[string][]byte // now, or before, by the Secrets in the namespace of the object
	keeper  *site             // keeps what was known once; nil if no site can
	first   bool              // nothing was ever published of the object
}

// recall reads what is at the sites, and what was known once. A Secret that is no target any more
// hands it over.
func (p *publication) recall(ctx context.Context, now map[string][]byte) error {
	for _, s := range p.sites {
		if s.refused != nil {
			continue
		}
		err := p.recallAt(ctx, s)
		if err != nil && s.own {
			return err // it may be the one that keeps it
		}
		s.refused = err
	}
	p.once = maps.Clone(now)
	if p.once == nil {
		p.once = make(map[string][]byte)
	}
	own := slices.Collect(p.secrets(true))
	for _, s := range own {
		for detail, value := range s.noted {
			if _, known := p.once[detail]; s.ours && !known {
				p.once[detail] = value
			}
		}
	}
	p.keeper = p.findKeeper(own)
	if len(own) == 0 || p.keeper != nil && len(p.keeper.noted) > 0 {
		return nil
	}
	return p.addAllNoted(ctx, p.once, p.owner.GetNamespace())
}

// recallAt reads what is at a site, and what was known once there.
func (p *publication) recallAt(ctx context.Context, s *site) error {
	s.noted = make(map[string][]byte)
	if err := s.read(ctx, p.client, p.owner); err != nil {
		return err
	}
	switch {
	case s.Secret == "":
	case s.former != nil:
		p.addNoted(s.noted, s.former)
	case !s.own: // of a cluster-scoped object, it may have had another name
		return p.addAllNoted(ctx, s.noted, s.Namespace)
	}
	return nil
}

// secrets are the sites of Secrets that may be written, in the namespace of the object or in others.
func (p *publication) secrets(own bool) func(yield func(*site) bool) {
	return func(yield func(*site) bool) {
		for _, s := range p.sites {
			if s.Secret != "" && s.own == own && s.refused == nil && !yield(s) {
				return
			}
		}
	}
}

// refusals returns why nothing is published to some sites.
func (p *publication) refusals() error {
	var all []error
	for _, s := range p.sites {
		all = append(all, s.refused)
	}
	return errors.Join(all...)
}

// keepers are the sites that can keep what was known once, the best one first.
func (p *publication) keepers() []*site {
	all := slices.Collect(p.secrets(true))
	if len(all) == 0 {
		all = slices.Collect(p.secrets(false))
	}
	slices.SortStableFunc(all, func(a, b *site) int {
		switch p.keeper {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	return all
}

// findKeeper returns the Secret that keeps what was known once: the one that does, or the first that is
// ours or not there yet. One in another namespace does if there is no other, for itself.
func (p *publication) findKeeper(own []*site) *site {
	from := own
	if len(from) == 0 {
		from = slices.Collect(p.secrets(false))
	}
	for _, suits := range []func(s *site) bool{
		func(s *site) bool { return len(s.noted) > 0 && (s.ours || !s.own) },
		func(s *site) bool { return s.ours || s.former == nil },
		func(*site) bool { return true },
	} {
		if i := slices.IndexFunc(from, suits); i >= 0 {
			return from[i]
		}
	}
	return nil
}

// addNoted adds to details what a Secret says was known once.
func (p *publication) addNoted(details map[string][]byte, secret client.Object) {
	notes(secret, func(detail, key string, asIs bool) {
		value, ok := valueOf(secret, key)
		if _, known := details[detail]; known || !ok || !asIs && p.isRendered(key, value) {
			return
		}
		details[detail] = value
	})
}

// isRendered reports whether a chosen key of some target, made of what is known each time, has a value.
func (p *publication) isRendered(key string, value []byte) bool {
	return slices.ContainsFunc(p.sites, func(s *site) bool {
		text, chosen := s.Keys[key]
		if !chosen {
			return false
		}
		got, missing, err := execute(key, text, p.values)
		return err == nil && missing == "" && bytes.Equal(got, value)
	})
}

// onceIndex finds the Secrets that say what was known once by the UID of the object that controls them.
// To search a namespace for each of its objects would be quadratic at the start of an operator.
var onceIndex = state.Index[client.Object]{Name: "ctrlkit:external.once", Values: func(secret client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil || secret.GetAnnotations()[onceAnnotation] == "" {
		return nil
	}
	return []string{string(owner.UID)}
}}

// indexed are watches of which those of Secrets have the index.
func indexed(watches []step.Watch) []step.Watch {
	for i := range watches {
		if isSecret(watches[i].Object) {
			watches[i].Indexes = append(slices.Clip(watches[i].Indexes), onceIndex)
		}
	}
	return watches
}

func isSecret(obj client.Object) bool { _, ok := obj.(*corev1.Secret); return ok }

// addAllNoted adds to details what the Secrets of a namespace that the object controls say was known once.
func (p *publication) addAllNoted(ctx context.Context, details map[string][]byte, namespace string) error {
	if namespace == "" || p.first {
		return nil
	}
	list, of := &corev1.SecretList{}, &client.ListOptions{Namespace: namespace, UnsafeDisableDeepCopy: new(true)}
	of.FieldSelector = fields.OneTermEqualSelector(onceIndex.Name, string(p.owner.GetUID()))
	if p.client.List(ctx, list, of) != nil { // the engine has no cache, or Secrets are not read from it
		of.FieldSelector = nil
		if err := p.client.List(ctx, list, of); err != nil {
			return fmt.Errorf("finding the former Secrets: %w", err)
		}
	}
	var all []client.Object
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], p.owner) {
			all = append(all, &list.Items[i])
		}
	}
	slices.SortStableFunc(all, func(a, b client.Object) int { // the last name has what is newest
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	for _, secret := range all {
		p.addNoted(details, secret)
	}
	return nil
}

// detailsFor returns the details for a site, and those that it stores as known once. An older password
// does not work any more, and the system knows the newer one.
func (p *publication) detailsFor(s *site) (details map[string][]byte, keep []string) {
	details = maps.Clone(s.noted)
	if details == nil || s.own && s.ours {
		details = make(map[string][]byte, len(p.once)+len(p.values)) // its own notes are among those of all
	}
	maps.Copy(details, p.once)
	if s.keeps(p.keeper) {
		keep = slices.Sorted(maps.Keys(details))
	}
	maps.Copy(details, p.values)
	return details, keep
}

// keeps reports whether a site stores what was known once: the keeper, a Secret that has all details, and
// one that has what the keeper has not.
func (s *site) keeps(keeper *site) bool {
	switch {
	case s.Secret == "":
		return false
	case s == keeper || len(s.Keys) == 0 || keeper == nil:
		return true
	}
	for detail := range s.noted {
		if _, ok := keeper.noted[detail]; !ok {
			return true
		}
	}
	return false
}

// render makes the objects of all sites that are not refused. What a person has written to a Secret for
// a detail that is not known counts.
func (p *publication) render() (objects map[*site]client.Object, lacks []lack) {
	for {
		objects, lacks = make(map[*site]client.Object, len(p.sites)), nil
		for _, s := range p.sites {
			if s.refused != nil {
				continue
			}
			details, keep := p.detailsFor(s)
			obj, missing, err := s.render(p.manager, details, p.public, keep)
			if err != nil {
				s.refused = err
				continue
			}
			objects[s] = obj
			lacks = append(lacks, missing...)
		}
		learned := false
		for _, l := range lacks {
			learned = p.learn(l) || learned
		}
		if !learned {
			return objects, lacks
		}
	}
}

// learn adds the detail of a lack if a person has provided it: in a Secret of the object in its
// namespace, or in the one that lacks it, for that one.
func (p *publication) learn(l lack) bool {
	for s := range p.secrets(true) {
		if key := s.keyOf(l.detail); s.ours && s.byHand(p.manager, key) {
			if _, known := p.once[l.detail]; !known {
				p.once[l.detail], _ = valueOf(s.former, key)
				return true
			}
		}
	}
	key := l.keyOf(l.detail)
	if _, known := l.noted[l.detail]; known || l.own || l.Secret == "" || !l.byHand(p.manager, key) {
		return false
	}
	l.noted[l.detail], _ = valueOf(l.former, key)
	return true
}

// unpublished returns the failure of keys that can't be made, nil if there are none.
func (p *publication) unpublished(lacks []lack) error {
	if len(lacks) == 0 {
		return nil
	}
	texts := make([]string, len(lacks))
	for i, l := range lacks {
		texts[i] = l.String()
	}
	return failure.Mark(errors.New(strings.Join(texts, "; ")+", which is not known"), failure.WithReason(reasonUnpublished),
		failure.WithRemedy("if the system never returns it, provide it: "+p.providing(lacks)+", or remove the key from the target"))
}

// providing returns the command by which a person provides what is lacking: details, in the Secret that
// keeps what was known once. Without one in the namespace of the object, it is for the first target that
// lacks something: for its details, or for its key if it is a ConfigMap.
func (p *publication) providing(lacks []lack) string {
	own := p.keeper != nil && p.keeper.own && p.keeper.refused == nil
	at, keys := lacks[0].site, []string(nil)
	if own {
		at = p.keeper
	}
	for _, l := range lacks {
		if l.detail != anyDetail && at.Secret != "" && (own || l.site == at) {
			keys = append(keys, at.keyOf(l.detail))
		}
	}
	if len(keys) == 0 {
		at, keys = lacks[0].site, []string{lacks[0].key}
	}
	slices.Sort(keys)
	return at.providing(slices.Compact(keys))
}
