// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
)

// Details are what there is to publish, by key.
type Details struct {
	// Values are known each time, such as those that an external system returns when it is asked.
	Values map[string][]byte
	// Once are those that are known only now, such as a password that is returned when it is made.
	// They are kept in the first Secret in the namespace of the object, beside what is known later:
	// under their own keys, or, beside a chosen key of that name, with the prefix "once.".
	Once map[string][]byte

	first   bool // nothing was ever published of the object
	partial bool // more follows, after what is known once has been kept: a key that can't be made yet is no error
}

// A Target is a Secret or a ConfigMap to which details are published. It belongs to the object.
type Target struct {
	// Secret or ConfigMap is its name: one of them is set.
	Secret, ConfigMap string
	// Namespace is that of the object if it is empty. Another one needs Publisher.Elsewhere, and
	// the consent of that Namespace: its annotation publish.ctrlkit.dev/from names the namespaces of
	// the objects, separated by commas, or "*", which cluster-scoped objects need.
	Namespace string
	// Keys are the keys of the target, each with a template of text/template over the details as
	// strings: {"url": "https://{{.host}}:{{.port}}"}. A detail whose name is no identifier is
	// {{index . "ca.crt"}}. Each detail that a template reads, also in a condition, has to be known; a
	// range over all of them has those that are. A Secret without Keys has all details under their own
	// keys. A ConfigMap needs Keys.
	Keys map[string]string
	// Type is that of a Secret, Opaque by default. It can't be changed later.
	Type corev1.SecretType
	// Labels and Annotations are set besides those of this package.
	Labels, Annotations map[string]string
}

// name is what a target is called in messages.
func (t *Target) name() string {
	kind := "Secret "
	if t.Secret == "" {
		kind = "ConfigMap "
	}
	return kind + strings.TrimPrefix(t.Namespace+"/"+cmp.Or(t.Secret, t.ConfigMap), "/")
}

// ref is what a target is called in a set.
func (t *Target) ref() apply.Ref {
	if t.Secret == "" {
		return apply.Ref{Kind: "ConfigMap", Namespace: t.Namespace, Name: t.ConfigMap}
	}
	return apply.Ref{Kind: "Secret", Namespace: t.Namespace, Name: t.Secret}
}

func (t *Target) check() error {
	switch {
	case (t.Secret == "") == (t.ConfigMap == ""):
		return errors.New("a target has the name of a Secret or of a ConfigMap")
	case t.ConfigMap != "" && len(t.Keys) == 0:
		return fmt.Errorf("%s has no keys: a ConfigMap has only those that are chosen", t.name())
	case t.ConfigMap != "" && t.Type != "":
		return fmt.Errorf("%s has the type of a Secret", t.name())
	}
	return nil
}

func valueOf(obj client.Object, key string) ([]byte, bool) {
	switch obj := obj.(type) {
	case *corev1.Secret:
		value, ok := obj.Data[key]
		return value, ok
	case *corev1.ConfigMap:
		value, ok := obj.Data[key]
		return []byte(value), ok
	}
	return nil, false
}
