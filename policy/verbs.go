// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
)

// Verbs is a set of what an operator may do for an object. The zero value is the empty set.
type Verbs uint8

// The verbs, each as a set of one.
const (
	// VerbObserve is to find out what exists. It changes nothing outside the object's status.
	VerbObserve Verbs = 1 << iota
	// VerbCreate is to create what the object stands for.
	VerbCreate
	// VerbUpdate is to change what exists.
	VerbUpdate
	// VerbDelete is to delete what exists: when the object is deleted, or to replace it.
	VerbDelete
	// VerbLateInitialize is to set fields of the spec that the user has left empty to the values
	// that exist.
	VerbLateInitialize
)

// AllVerbs is the set of all verbs.
const AllVerbs = VerbObserve | VerbCreate | VerbUpdate | VerbDelete | VerbLateInitialize

// verbNames are the words for the verbs, in the order of their bits.
var verbNames = []string{"observe", "create", "update", "delete", "late-initialize"}

// everyVerb is the word for all verbs.
const everyVerb = "*"

// ParseVerbs returns the set that a text names: "*", or verbs that are separated by commas, such as
// "observe, create". Upper and lower case make no difference.
//
// The error names the first word that is no verb, and the most similar one. A set without observe
// is an error, too: nothing can be created, changed or deleted that is not observed.
func ParseVerbs(text string) (Verbs, error) {
	var all Verbs
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		verb := verbOf(fold(word))
		if verb == 0 {
			problem := fmt.Sprintf("there is no verb %s%s: use %q, or some of %s, separated by commas",
				quote(word), didYouMean(word, verbNames), everyVerb, list(verbNames, "and"))
			return 0, &invalidError{value: text, problem: problem}
		}
		all |= verb
	}
	if !all.Has(VerbObserve) {
		return 0, &invalidError{value: text, problem: fmt.Sprintf("what is not observed can't be created, changed or deleted: add %q", verbNames[0])}
	}
	return all, nil
}

// verbOf returns the set that a folded word stands for, zero for none.
func verbOf(word string) Verbs {
	if word == everyVerb {
		return AllVerbs
	}
	for i, name := range verbNames {
		if word == name {
			return 1 << i
		}
	}
	return 0
}

// Has reports whether all of verbs are in the set. It reports false for no verbs, so that a
// forgotten one is not allowed.
func (v Verbs) Has(verbs Verbs) bool { return verbs != 0 && v&verbs == verbs }

// String returns the set as [ParseVerbs] reads it: "observe,create", or "*" for all. The empty set,
// which has no such text, is "none".
func (v Verbs) String() string {
	switch {
	case v&AllVerbs == AllVerbs:
		return everyVerb
	case v&AllVerbs == 0:
		return "none"
	}
	return strings.Join(v.names(), ",")
}

func (v Verbs) names() []string {
	var names []string
	for i, name := range verbNames {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
