// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A record is what is known of the creation of a resource, as IntentAnnotation has it:
//
//	begun 2026-11-22T10:00:00Z by 6f1c... token 8d2e...-2 for 8d2e...
//	created 2026-11-22T10:00:00Z for 8d2e... of 0a1b2c3d
//	refused 2026-11-22T10:00:00Z
//	none
//
// It helps to find what a crash has left, and proves nothing: all who may edit the object can write
// it. Words of other versions of this package are kept.
type record struct {
	step    string // begun, created, refused, nothing, or empty if there is no record
	at      time.Time
	process string // that has begun it
	token   string
	uid     string // of the object for which it was written; empty in one of a former version
	of      string // the fingerprint of the id; empty if that was not known
	unseen  int    // creations before this one, in a row, that were never seen
	others  string // words of other versions
}

const (
	begun   = "begun"
	created = "created"
	refused = "refused" // the system has answered that nothing was created
	nothing = "none"    // a person has looked, and nothing was created
)

// recordOf returns the record of an object. The error says what is wrong with the annotation.
func recordOf(obj metav1.Object) (record, error) {
	text, ok := obj.GetAnnotations()[IntentAnnotation]
	if !ok {
		return record{}, nil
	}
	words := strings.Fields(text)
	if slices.Equal(words, []string{nothing}) {
		return record{step: nothing}, nil
	}
	r := record{}
	if len(words)%2 != 0 || len(words) == 0 {
		return r, badRecord(text)
	}
	for i := 0; i < len(words); i += 2 {
		key, value := words[i], words[i+1]
		switch key {
		case begun, created, refused:
			at, err := time.Parse(time.RFC3339, value)
			if err != nil || r.step != "" || at.UTC().Format(time.RFC3339) != value {
				return record{}, badRecord(text)
			}
			r.step, r.at = key, at
		case "by":
			r.process = value
		case "token":
			r.token = value
		case "for":
			r.uid = value
		case "of":
			r.of = value
		case "unseen":
			n, err := strconv.Atoi(value)
			if err != nil || n <= 0 || strconv.Itoa(n) != value {
				return record{}, badRecord(text)
			}
			r.unseen = n
		default:
			r.others += " " + key + " " + value
		}
	}
	if r.step == "" {
		return record{}, badRecord(text)
	}
	return r, nil
}

func badRecord(text string) error {
	return fmt.Errorf("annotation %s is %q, which no operator has written: remove it and, if the resource exists, set %s to its id", IntentAnnotation, text, IDAnnotation)
}

// String returns the text of the annotation.
func (r record) String() string {
	if r.step == "" || r.step == nothing {
		return r.step
	}
	text := r.step + " " + r.at.UTC().Format(time.RFC3339)
	if r.process != "" {
		text += " by " + r.process
	}
	for _, word := range [][2]string{{"token", r.token}, {"for", r.uid}, {"of", r.of}} {
		if word[1] != "" {
			text += " " + word[0] + " " + word[1]
		}
	}
	if r.unseen > 0 {
		text += fmt.Sprintf(" unseen %d", r.unseen)
	}
	return text + r.others
}

// isOf reports whether the record is of an object, and of the resource with an id.
func (r record) isOf(obj metav1.Object, id string) bool {
	return (r.uid == "" || r.uid == OwnerOf(obj)) && (r.of == "" || r.of == fingerprint(id))
}

// same reports whether two records are of the same creation.
func (r record) same(other record) bool {
	return r.step == other.step && r.at.Unix() == other.at.Unix() && r.process == other.process && r.token == other.token
}

// lost reports whether the record is one that the annotations should have, and do not.
func (r record) lost() bool { return r.step == begun && r.process == "" }

// tokenOf returns the token of the next creation for an object: the last one again, because the
// system answers it with what was created with it. It is made of the UID, so that it is known
// without an annotation; a token of an object that was restored under another UID is none.
func (r record) tokenOf(obj metav1.Object) string {
	if strings.HasPrefix(r.token, string(obj.GetUID())+"-") {
		return r.token
	}
	return string(obj.GetUID()) + "-1"
}

// nextToken returns the token after the last one, for a system that answers that one with a
// resource which was deleted. Who has lost the annotations counts in the same way, and finds the
// resource.
func (r record) nextToken(obj metav1.Object) string {
	n := 0
	if _, err := fmt.Sscanf(strings.TrimPrefix(r.tokenOf(obj), string(obj.GetUID())+"-"), "%d", &n); err != nil {
		n = 0
	}
	return fmt.Sprintf("%s-%d", obj.GetUID(), max(n, 1)+1)
}

// setRecord writes a record into the annotations of an object, or removes it.
func setRecord(obj metav1.Object, r record) { annotate(obj, IntentAnnotation, r.String()) }

// annotate sets an annotation, or removes it if value is empty.
func annotate(obj metav1.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if value == "" {
		delete(annotations, key)
	} else {
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		annotations[key] = value
	}
	obj.SetAnnotations(annotations)
}
