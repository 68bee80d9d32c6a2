// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	objectpolicy "github.com/ctrlkit/ctrlkit/policy"
)

// An Option says how objects of a set are kept. See [Set.Add].
type Option interface{ apply(*policy) }

// A Policy is an [Option] in a word. Users of the operator may give the same words to a single
// object, in the annotation [PolicyAnnotation]; those that this page marks with "also by
// annotation".
type Policy string

const (
	// CreateOnly creates an object if there is none, and leaves it alone afterwards, whatever the
	// set says later. One that exists and becomes part of the set, such as that of an older
	// version of the operator, stays as it is, too: it may have a generated password. Also by
	// annotation: then all further changes are the user's.
	CreateOnly Policy = "create-only"
	// Replace deletes an object, and its Pods with it, and creates it again when a change is
	// refused for the sole reason that fields are immutable: by the API server itself, which would
	// accept the same content as a new object. A change that an admission policy, a webhook or a
	// rule such as "may only grow" refuses stays refused. So does a change of what holds data: of a
	// PersistentVolumeClaim, a PersistentVolume, a Namespace, a CustomResourceDefinition, a
	// StatefulSet with volumeClaimTemplates, and of what has the policy Keep. Without Replace, the
	// failure has the words of the API server, and a remedy. Also by annotation.
	Replace Policy = "replace"
	// ReplaceOrphaning is Replace for a StatefulSet, a Deployment, a ReplicaSet or a DaemonSet, and
	// for a Job with a manualSelector, whose Pods stay, and with them claims: it deletes the object
	// as kubectl delete --cascade=orphan does, and the new one adopts what is left. It refuses if the
	// selector that is wanted does not select the Pods that exist: nothing would ever delete them.
	// Also by annotation.
	ReplaceOrphaning Policy = "replace-orphaning"
	// ReplaceLosingData is Replace for what holds data, too. The data is gone. Also by annotation.
	ReplaceLosingData Policy = "replace-losing-data"
	// Keep leaves an object in the cluster when it leaves the set, and when its owner is deleted.
	// It has no owner reference then. Also by annotation; there, the owner reference stays, and
	// with it the deletion by the garbage collector.
	Keep Policy = "keep"
	// Unowned gives an object no owner reference, although it could have one. It is deleted with
	// its owner all the same, by the operator: its kind has to be among those that [Tracks] names.
	Unowned Policy = "unowned"
	// Adopt takes an object over that exists and that no controller and no other set has. Also by
	// annotation: the owner of such an object may give it away.
	Adopt Policy = "adopt"
	// Theirs leaves fields that other field managers have set to them. Without it, and without
	// StopOnConflict, fields of the set become ours.
	Theirs Policy = "theirs"
	// StopOnConflict fails when another field manager has set a field of the set.
	StopOnConflict Policy = "stop-on-conflict"
	// Once runs a Job until it has completed, and not again for the same content: not after an
	// upgrade of the operator, and not when the Job is gone, by its time to live or by hand. What
	// is left out of the content is what can be changed while a Job exists: deadline, number of
	// retries, parallelism, suspension and time to live. With another content, the Job is deleted,
	// and when its Pods are gone, created again. One that fails stays until its content changes, or
	// until a person deletes it, to have it run again.
	//
	// The owner remembers the last 100 contents of the set that have completed.
	Once Policy = "once"
	// NoWait counts an object as ready as soon as it exists.
	NoWait Policy = "no-wait"
)

// byAnnotation are the policies that users may give to an object.
var byAnnotation = []Policy{CreateOnly, Replace, ReplaceOrphaning, ReplaceLosingData, Keep, Adopt}

// replacing are the policies that allow an object to be deleted and created again.
var replacing = []Policy{Replace, ReplaceOrphaning, ReplaceLosingData}

// PolicyAnnotation is the annotation by which users change how one object is kept: policies,
// separated by commas. A word that is none is an error: the object is not written.
//
// The annotations of package policy hold for an object of a set, too:
//
//   - An object that may not be updated, with policy.ctrlkit.dev/reconcile: skip for example, is
//     left as it is.
//   - An object that may not be deleted is kept as by [Keep], and is not replaced either.
//   - A value that is none is an error, as a word that is none.
//
// They count on the object itself, not on its namespace, whose annotations are for the owner.
// Those that the set applies are for the operator of the object, and do not count for the set.
const PolicyAnnotation = "apply.ctrlkit.dev/policy"

func (p Policy) apply(to *policy) {
	if !to.has(p) {
		to.words = append(to.words, p)
	}
}

// Wave is the place of objects in the order of a set, 0 by default. The objects of a wave are
// written when all of the waves before it are ready. With [DeleteInOrder], they are deleted in
// reverse order.
func Wave(n int) Option { return wave(n) }

type wave int

func (w wave) apply(to *policy) { to.wave = int(w) }

// ReadyWhen replaces the rules of kstatus for objects. It is called with the object as the cluster
// has it, and returns whether it is ready, and what it lacks: "2 of 3 members have joined".
func ReadyWhen(ready func(obj *unstructured.Unstructured) (ready bool, lacks string)) Option {
	return readyWhen(ready)
}

type readyWhen func(obj *unstructured.Unstructured) (bool, string)

func (r readyWhen) apply(to *policy) { to.ready = r }

// A policy is how one object is kept.
type policy struct {
	words []Policy
	wave  int
	ready readyWhen // nil for the rules of kstatus
	// inputs are what Pods depend on beside their template.
	inputs []client.Object
	// frozen is true for an object that exists and that its users do not let be written.
	frozen bool
}

func (p *policy) has(word Policy) bool { return slices.Contains(p.words, word) }

// tracked reports whether an object is not left to the garbage collector, although it could have
// an owner reference.
func (p *policy) tracked() bool { return p.has(Keep) || p.has(Unowned) }

func (p *policy) check() error {
	known := append([]Policy{Unowned, Theirs, StopOnConflict, NoWait, Once}, byAnnotation...)
	for _, word := range p.words {
		if !slices.Contains(known, word) {
			return fmt.Errorf("there is no policy %q: use a constant of package apply", word)
		}
	}
	if p.has(Theirs) && p.has(StopOnConflict) {
		return fmt.Errorf("apply.Theirs and apply.StopOnConflict exclude each other")
	}
	if p.has(Once) && (p.has(CreateOnly) || p.ready != nil) {
		return fmt.Errorf("apply.Once excludes apply.CreateOnly and apply.ReadyWhen: it is about the end of a Job")
	}
	return nil
}

// checkLoose returns an error if a policy is for the objects of sets alone.
func (p *policy) checkLoose() error {
	word := ""
	switch {
	case p.wave != 0:
		word = "Wave"
	case p.ready != nil:
		word = "ReadyWhen"
	case p.has(Once):
		word = "Once"
	case p.tracked():
		word = "Keep (and Unowned)"
	default:
		return nil
	}
	return fmt.Errorf("apply.%s needs a set: use apply.Children", word)
}

// with returns the policy of an object that exists, with what its users have annotated. Manager is
// the field manager of the set.
func (p policy) with(current client.Object, manager string) (policy, error) {
	if text := current.GetAnnotations()[PolicyAnnotation]; text != "" {
		p.words = slices.Clone(p.words)
		for word := range strings.SplitSeq(text, ",") {
			word := Policy(strings.TrimSpace(word))
			if !slices.Contains(byAnnotation, word) {
				return p, fmt.Errorf("annotation %s has %q: use %s, separated by commas", PolicyAnnotation, word, quoted(byAnnotation))
			}
			word.apply(&p)
		}
	}
	theirs := usersPolicies(current, manager)
	if theirs == nil {
		return p, nil
	}
	allowed := objectpolicy.Resolve(theirs, nil, objectpolicy.Defaults{IgnoreNamespaces: true})
	p.frozen = !allowed.Allows(objectpolicy.VerbUpdate)
	if !allowed.Allows(objectpolicy.VerbDelete) {
		p.words = slices.DeleteFunc(slices.Clone(p.words), func(word Policy) bool { return slices.Contains(replacing, word) }) // it would be deleted
		Keep.apply(&p)
	}
	return p, allowed.Err()
}

// usersPolicies returns the annotations of package policy that an object has and that were not
// applied by our manager, nil if there are none.
func usersPolicies(obj client.Object, manager string) metav1.Object {
	theirs := objectpolicy.Annotations(obj)
	maps.DeleteFunc(theirs, func(key, _ string) bool { return isApplied(obj, manager, key) })
	if len(theirs) == 0 {
		return nil
	}
	return &metav1.ObjectMeta{Annotations: theirs}
}

// isApplied reports whether our manager has applied an annotation. Without managed fields it is
// taken for a user's, which keeps the object.
func isApplied(obj client.Object, manager, annotation string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.FieldsV1 != nil &&
			bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+annotation+`"`))
	})
}

// keeps reports whether an object that has left the set, or whose owner is deleted, stays.
func keeps(obj client.Object, manager string) (bool, error) {
	annotated, err := policy{}.with(obj, manager)
	return obj.GetAnnotations()[keepAnnotation] != "" || annotated.has(Keep), err
}

func quoted(words []Policy) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " or " + texts[len(texts)-1]
}
