// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels and annotations that a set writes to its objects, besides those that their author wants.
const (
	// SetLabel is the label by which the objects of a set are found. Its value stands for the kind,
	// the namespace and the name of the owner, and the names of the engine and of the step: two
	// sets never have the same.
	SetLabel = "apply.ctrlkit.dev/set"
	// OwnerAnnotation names the owner of an object that has no owner reference:
	// "Website.web.ctrlkit.dev default/shop".
	OwnerAnnotation = "apply.ctrlkit.dev/owner"
	// HashAnnotation is a hash of what was applied.
	HashAnnotation = "apply.ctrlkit.dev/hash"

	waveAnnotation = "apply.ctrlkit.dev/wave"
	keepAnnotation = "apply.ctrlkit.dev/keep"
)

// An identity is that of a set.
type identity struct {
	owner   schema.GroupKind
	key     client.ObjectKey
	manager string // the field owner: two operators may have steps of one name for one kind
	name    string
}

// label returns the value of SetLabel. The parts are hashed with their lengths: "bprod/we" and
// "prod/web" are two owners.
func (i identity) label() string {
	h := sha256.New()
	for _, part := range []string{i.owner.Group, i.owner.Kind, i.key.Namespace, i.key.Name, i.manager, i.name} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // writing to a hash never fails
	}
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20]))
}

// annotation returns the value of OwnerAnnotation.
func (i identity) annotation() string {
	name := i.key.Name
	if i.key.Namespace != "" {
		name = i.key.String()
	}
	return i.owner.String() + " " + name
}

// ownerOf returns the key of the owner that an annotation names, and whether it is of a kind.
func ownerOf(annotation string, kind schema.GroupKind) (client.ObjectKey, bool) {
	text, name, ok := strings.Cut(annotation, " ")
	if !ok || text != kind.String() {
		return client.ObjectKey{}, false
	}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: rest}, true
	}
	return client.ObjectKey{Name: name}, true
}

// A Ref names an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the kind and the name: "Deployment default/web".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

func (r Ref) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }

func (r Ref) groupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

func refOf(kind schema.GroupKind, key client.ObjectKey) Ref {
	return Ref{kind.Group, kind.Kind, key.Namespace, key.Name}
}
