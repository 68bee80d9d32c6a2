// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// domain is the part of the name that all annotations of this package have in common. An annotation
// in it that is none of them, such as a misspelled one, is invalid: it does not have the effect
// that its author wants.
const domain = "policy.ctrlkit.dev"

// The annotations of objects and namespaces.
const (
	ReconcileAnnotation = domain + "/reconcile"
	ReclaimAnnotation   = domain + "/reclaim"
	AllowAnnotation     = domain + "/allow"
	// ReconcileNowAnnotation requests a reconcile: see [Request]. On a namespace it is for all
	// objects in it.
	ReconcileNowAnnotation = domain + "/reconcile-now"
)

var (
	annotations     = []string{ReconcileAnnotation, ReclaimAnnotation, AllowAnnotation, ReconcileNowAnnotation}
	annotationNames = []string{"reconcile", "reclaim", "allow", "reconcile-now"} // without the domain
)

// Annotations returns the annotations in our domain that an object has, nil if there are none: what
// it says of its policy, and a request.
func Annotations(object metav1.Object) map[string]string {
	var ours map[string]string
	for key, value := range object.GetAnnotations() {
		if strings.HasPrefix(key, domain+"/") {
			if ours == nil {
				ours = make(map[string]string)
			}
			ours[key] = value
		}
	}
	return ours
}

// Reconcile is what an operator does for an object that exists.
type Reconcile string

// The values of [ReconcileAnnotation].
const (
	// ReconcileManage is to do all that the other parts allow.
	ReconcileManage Reconcile = "manage"
	// ReconcileSkip is to refresh the status, and nothing else. When the object is deleted, what it
	// stands for stays.
	ReconcileSkip Reconcile = "skip"
	// ReconcileDetachOnDelete is to manage the object, and to leave what it stands for when the
	// object is deleted.
	ReconcileDetachOnDelete Reconcile = "detach-on-delete"
)

var reconcileNames = []string{string(ReconcileManage), string(ReconcileSkip), string(ReconcileDetachOnDelete)}

// Reclaim is what becomes of what an object stands for when the object is deleted.
type Reclaim string

// The values of [ReclaimAnnotation].
const (
	// ReclaimDelete is to delete it.
	ReclaimDelete Reclaim = "delete"
	// ReclaimRetain is to leave it.
	ReclaimRetain Reclaim = "retain"
)

var reclaimNames = []string{string(ReclaimDelete), string(ReclaimRetain)}

// parseReconcile returns the value that a text names. Upper and lower case, and spaces around it,
// make no difference.
func parseReconcile(text string) (Reconcile, error) {
	word, err := parseWord(text, reconcileNames)
	return Reconcile(word), err
}

// parseReclaim returns the value that a text names. Upper and lower case, and spaces around it,
// make no difference.
func parseReclaim(text string) (Reclaim, error) {
	word, err := parseWord(text, reclaimNames)
	return Reclaim(word), err
}

func parseWord(text string, names []string) (string, error) {
	word := fold(text)
	for _, name := range names {
		if word == name {
			return name, nil
		}
	}
	return "", &invalidError{value: text, problem: "use " + list(names, "or") + didYouMean(text, names)}
}

// An invalidError says what is wrong with one annotation, or with one default of the operator.
type invalidError struct {
	annotation string // its name, empty for a text that was parsed by itself
	source     source
	value      string
	problem    string // and which values are allowed
}

// Error returns where the value is, the value, and what is wrong with it.
func (e *invalidError) Error() string {
	if e.annotation == "" {
		return quote(e.value) + " is invalid: " + e.problem
	}
	return e.source.describe(e.annotation, e.value) + ": " + e.problem
}

// longestWord is how much of a value is shown. An annotation may be larger than a condition's
// message.
const longestWord = 60

func quote(value string) string {
	if len(value) > longestWord {
		end := longestWord
		for end > 0 && !utf8.RuneStart(value[end]) {
			end--
		}
		value = value[:end] + "..."
	}
	return fmt.Sprintf("%q", value)
}

func fold(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

// didYouMean returns a hint at the name that a word is most similar to, empty if none is.
func didYouMean(word string, names []string) string {
	if near, ok := printable.Near(fold(word), names); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// list returns the quoted names: "a", "b" or "c".
func list(names []string, last string) string {
	var text strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			text.WriteString(" " + last + " ")
		case i > 0:
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%q", name)
	}
	return text.String()
}
