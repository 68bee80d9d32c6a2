// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
)

// refusals are what an object is refused with: what stands in the way, who could end it, and how.
type refusals[T client.Object] struct{ *session[T] }

// refusal is the failure of an object whose resource is not its own: what stands in the way, who could
// end it, and how.
func (s refusals[T]) refusal() error {
	const other = "choose another name or id"
	f := s.facts
	switch s.decision.why {
	case whyWrongID:
		s.mark()
		err := failure.Terminal(fmt.Errorf("the resource %q, which annotation %s names, does not exist", s.id, IDAnnotation), reasonWrongAnnotation, "", failure.WithRetryAfter(s.poll(s.req.Object)))
		return remediable(err, "correct the annotation, or remove it to have a resource created")
	case whyEdited:
		return s.editedID()
	case whyLiving:
		return s.foreign("it belongs to "+s.owner(), other)
	case whyOwner:
		if f.knowledge.owner == ownerLiving {
			return s.foreign("it belongs to "+s.owner(), other)
		}
		if s.record.uid == s.seen.Owner {
			return s.formerly(s.seen.Owner)
		}
		kind := s.kindOf(s.req.Object).Kind
		return s.foreign(fmt.Sprintf("it belongs to an object with the UID %s, and no %s that this operator sees has it: an object of another kind or another cluster, or one that is gone", s.seen.Owner, kind),
			other+"; or, if that object is gone for good, in every cluster, "+s.opening()+s.saying(s.seen.Owner))
	case whyGone:
		return s.foreign(fmt.Sprintf("it belongs to %s %s, which does not exist any more", f.claim.kind().Kind, f.claim.key()),
			other+"; or, to have this object take it over, "+s.opening()+s.saying(string(f.claim.uid)))
	case whyFormer:
		return s.formerly(string(f.claim.uid))
	case whyReplaced:
		return s.foreign("it is not the one that was created for this object: the system shows no owner any more, so that another client has created it since",
			other+"; or, if it may be taken over, "+s.opening()+s.saying(noOwner))
	case whyRight:
		return s.foreign("it was to be adopted, and the system does not show this object as its owner after the update that stores it",
			"ask the author of the operator: with Options.StoresOwner, Update has to store external.OwnerOf(obj), and Observe to report it")
	}
	return s.foreign("it exists, and nothing shows that it was made for this object", other+"; or, to have the object adopt it, "+s.naming())
}

// foreign is the failure of an object whose resource is not its own. It may become its own without
// an event.
func (s refusals[T]) foreign(why, remedy string) error {
	if s.req.Conditions != nil {
		s.req.Conditions.MarkHealthy(conditionFailed, reasonNone, "") // the system has answered
	}
	err := failure.Terminal(fmt.Errorf("the resource %q is not ours: %s", s.id, why), reasonForeign, "", failure.WithRetryAfter(s.poll(s.req.Object)))
	return remediable(err, remedy)
}

// formerly is the failure of an object that was restored.
func (s refusals[T]) formerly(uid string) error {
	return s.foreign("it belongs to this object under its former UID "+uid+": the object was restored, or copied",
		"choose another name or id; or, if the object with that UID is gone for good, in every cluster, "+s.opening()+s.saying(formerOwner))
}

// opening says how the right to adopt is given, unless the object has it.
func (s refusals[T]) opening() string {
	namespace := s.req.Object.GetNamespace()
	switch {
	case s.facts.knowledge.right:
		return ""
	case s.options.Adopt != nil || namespace == "" || !s.options.Policy.NeedsNamespace(s.req.Object):
		return fmt.Sprintf("have the author of the operator allow that (Options.Adopt refuses %q), and ", s.id)
	}
	return fmt.Sprintf("have the owner of the Namespace %s add %q to its annotation %s, and ", namespace, s.id, adoptAnnotation)
}

// saying is what the owner of the object does beside that.
func (s refusals[T]) saying(word string) string {
	return fmt.Sprintf("on this object, set the annotation %s to %s", adoptFromAnnotation, word)
}

// naming is what both do for a resource that has no owner.
func (s refusals[T]) naming() string {
	if s.req.Object.GetAnnotations()[IDAnnotation] == s.id {
		return strings.TrimSuffix(s.opening(), ", and ")
	}
	return s.opening() + fmt.Sprintf("on this object, set the annotation %s to %q", IDAnnotation, s.id)
}

// owner names the object that has the resource. Who may not see its namespace learns its kind.
func (s refusals[T]) owner() string {
	f := s.facts
	switch {
	case f.doubt != nil:
		return fmt.Sprintf("another %s, and nothing shows that it is gone: %v", f.claim.kind().Kind, f.doubt)
	case f.other != nil && f.other.GetNamespace() == s.req.Object.GetNamespace():
		return client.ObjectKeyFromObject(f.other).String()
	case f.claim != nil && f.claim.uid != s.req.Object.GetUID():
		return fmt.Sprintf("a %s of another namespace: see the Lease %s in namespace %s", f.claim.kind().Kind, f.claim.claimName(), s.claims.namespace)
	case f.other != nil:
		return "an object of another namespace with the UID " + string(f.other.GetUID())
	}
	return "another object"
}

// editedID is the failure of an object whose annotation was changed to another resource.
func (s refusals[T]) editedID() error {
	s.mark()
	const again = "to leave that resource and have another one adopted, delete the object with reclaim: retain, and create it again"
	uid, own, remedy := s.req.Object.GetUID(), "", "set the annotation to what it was; "+again
	if h := s.claims.of(uid); h != nil {
		own = h.id
		if p := s.key(); h.system != p.system || h.scope != p.scope {
			own = fmt.Sprintf("%s of %s, and this one is of %s", h.id, h.where(), p.where())
			remedy = "have the object look where it did; or, also if both are one system under two names, " + again
		}
	} else if proven := s.memory.get(uid).proven; proven != "" {
		own = proven
	}
	why := fmt.Sprintf("annotation %s names the resource %q, and the object has another one", IDAnnotation, s.id)
	if own != "" {
		why += ": " + own
	}
	err := failure.Terminal(errors.New(why), reasonWrongAnnotation, "", failure.WithRetryAfter(s.poll(s.req.Object)))
	return remediable(err, remedy)
}

// where names the system of a resource.
func (p resourceKey) where() string {
	switch {
	case p.system == "" && p.scope == "":
		return "the external system"
	case p.scope == "":
		return p.system
	}
	return p.system + " " + p.scope
}

// unproven is the wait of an object until the system shows whose the resource is. What was created a
// moment ago is waited for elsewhere.
func (s refusals[T]) unproven() error {
	if s.decision.why != whyUnshown {
		return nil
	}
	s.mark()
	err := ctrlkit.Poll(fmt.Sprintf("the system to show the owner of the resource %s, which is %s", s.id, s.seen.State), s.options.Busy)
	return withoutSystem(err)
}

// whyLeft says why the resource of an object that is being deleted is left.
func (s refusals[T]) whyLeft() string {
	f, why := s.facts, ""
	switch s.decision.why {
	case whyGives:
		return "it was given to the object with the UID " + gaveTo(s.req.Object)
	case whyLiving:
		why = "it belongs to " + s.owner()
	case whyOwner:
		why = "it belongs to an object with the UID " + s.seen.Owner
	case whyReplaced:
		why = "the system shows no owner, so that it is not the one that was created for the object"
	default:
		why = "nothing shows that it was created for the object, or adopted"
	}
	if f.knowledge.recorded || !f.knowledge.edited {
		return why
	}
	return why + "; the object had another one, which is left, too: ctrlkit orphans lists it"
}
