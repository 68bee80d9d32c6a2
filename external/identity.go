// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations of objects.
const (
	// IDAnnotation has what identifies the resource: its name, or the id that the system has given
	// it. To have an object adopt a resource that exists, set it before the object is created, or
	// later. It is not changed any more.
	IDAnnotation = "external.ctrlkit.dev/id"

	// pollAnnotation says how often the resource of an object is observed that is as it should be:
	// "10m". At least a second.
	pollAnnotation = "external.ctrlkit.dev/poll"

	// IntentAnnotation says that a resource is being created whose id is not known yet: a token,
	// or when the creation began. A person who has found that there is none sets it to "none".
	IntentAnnotation = "external.ctrlkit.dev/intent"
)

// An Identity says by what an external system identifies resources. The better the class, the less
// can go wrong in a crash between the creation of a resource and the record of its id. In this
// order: [ByName], [ByToken], [ByTag], [ByNothing].
type Identity[T client.Object] struct {
	class  class[T]
	window time.Duration // in which a resource may not be found yet
}

// check returns what is wrong with an identity.
func (i Identity[T]) check() error {
	if i.class == nil {
		return errors.New("no identity: choose ByName, ByToken, ByTag or ByNothing, by what the external system identifies resources")
	}
	return i.class.check()
}

// Creation returns how the first resource of an object is created. It is for the tests of clients.
func (i Identity[T]) Creation(obj T) (Creation, error) {
	if err := i.check(); err != nil {
		return Creation{}, err
	}
	return i.class.creation(obj, "", record{})
}

// IDOf returns what identifies the resource of an object, empty if that is not known.
func IDOf(obj metav1.Object) string { return obj.GetAnnotations()[IDAnnotation] }

// OwnerOf returns what to store with the resource of an object, where the system can store
// something: it shows later whose the resource is. It is the UID of the object.
func OwnerOf(obj metav1.Object) string { return string(obj.GetUID()) }

// NameRules are the rules of an external system for names.
type NameRules struct {
	// Prefix begins each name. It says which operator has made a resource.
	Prefix string
	// MaxLength is the longest name that is allowed, in bytes; 63 if it is zero. There must be
	// room for 16 characters after Prefix.
	MaxLength int
}

// uuids matches the UIDs that API servers choose: without the dashes they differ as well.
var uuids = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// shortestSuffix is what of the UID is in a name at least: 80 bits.
const shortestSuffix = 16

// NameOf returns the name of the resource of an object: Prefix and what identifies the UID of the
// object, in lower case letters and digits. Two objects never have the same name, also not one
// after the other under the same name in the cluster. The error says that the rules leave no room.
func (r NameRules) NameOf(obj metav1.Object) (string, error) {
	room := cmp.Or(r.MaxLength, 63) - len(r.Prefix)
	uid := strings.ReplaceAll(string(obj.GetUID()), "-", "")
	switch {
	case obj.GetUID() == "":
		return "", errors.New("an object without a UID has no name in an external system: it was not read from an API server")
	case room < shortestSuffix:
		return "", fmt.Errorf("names of at most %d characters with the prefix %q: %d characters are left, and at least %d are needed", cmp.Or(r.MaxLength, 63), r.Prefix, max(room, 0), shortestSuffix)
	case uuids.MatchString(string(obj.GetUID())) && len(uid) <= room:
		return r.Prefix + uid, nil
	}
	sum := sha256.Sum256([]byte(obj.GetUID()))
	text := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	return r.Prefix + text[:min(room, len(text))], nil
}
