// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ctrlkit/ctrlkit/apply"
)

// A site is a target of one object, with what the cluster has there.
//
// Its former object is believed about itself alone, if no other object controls it: what it has may be
// written to it again, which is refused if it is not ours. What is taken from it to other targets
// comes from Secrets in the namespace of the object that the object controls. Who may write Secrets
// in a namespace that consents puts nothing into another one.
type site struct {
	Target
	own     bool          // in the namespace of the object
	former  client.Object // nil if there is none that may be ours
	ours    bool          // the object controls the former object
	refused error         // why nothing is published to it
	noted   map[string][]byte
}

// read sets the former object, as the cache has it.
func (s *site) read(ctx context.Context, c client.Client, owner client.Object) error {
	var obj client.Object = &corev1.Secret{}
	if s.ConfigMap != "" {
		obj = &corev1.ConfigMap{}
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Secret + s.ConfigMap}, obj)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", s.name(), err)
	}
	if s.ours = metav1.IsControlledBy(obj, owner); s.ours || metav1.GetControllerOf(obj) == nil {
		s.former = obj
	}
	return nil
}

// A lack is a key of a target that can't be made.
type lack struct {
	*site
	key, detail string
}

func (l lack) String() string { return fmt.Sprintf("%s: key %s needs %s", l.name(), l.key, l.detail) }

// render returns the object of a site, and the keys that can't be made of the details. Of those, the
// values of the former object are kept: who uses them loses nothing. One that a person has written is
// theirs, and lacks nothing. Keep are the details that are to be stored as known once.
func (s *site) render(manager string, details map[string][]byte, public []string, keep []string) (client.Object, []lack, error) {
	visible := details
	if s.ConfigMap != "" {
		visible = maps.Clone(details)
		maps.DeleteFunc(visible, func(key string, _ []byte) bool { return !slices.Contains(public, key) })
	}
	values, lacks := make(map[string][]byte, len(details)), []lack(nil)
	if len(s.Keys) == 0 {
		maps.Copy(values, details)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Keys)) {
		value, missing, err := execute(key, s.Keys[key], visible)
		switch {
		case err != nil:
			return nil, nil, wrongTarget(fmt.Errorf("%s: key %s: %w", s.name(), key, err), "correct the target")
		case missing == "":
			values[key] = value
			continue
		}
		l := lack{s, key, missing}
		if _, secret := details[missing]; secret {
			return nil, nil, wrongTarget(fmt.Errorf("%s, which may not be in a ConfigMap", l), "name it in Publisher.Public, or publish it to a Secret")
		}
		if value, ok := valueOf(s.former, key); ok {
			if s.byHand(manager, key) {
				continue
			}
			values[key] = value
		}
		lacks = append(lacks, l)
	}
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: cmp.Or(s.Secret, s.ConfigMap), Labels: s.Labels, Annotations: s.Annotations}
	if s.ConfigMap != "" {
		texts := make(map[string]string, len(values))
		for key, value := range values {
			texts[key] = string(value)
		}
		return &corev1.ConfigMap{ObjectMeta: meta, Data: texts}, lacks, nil
	}
	if len(keep) > 0 {
		meta.Annotations = maps.Clone(meta.Annotations)
		if meta.Annotations == nil {
			meta.Annotations = make(map[string]string, 1)
		}
		entries := make([]string, len(keep))
		for i, detail := range keep {
			key := s.keyOf(detail)
			entries[i], values[key] = detail+"="+key, details[detail]
		}
		meta.Annotations[onceAnnotation] = strings.Join(entries, ",")
	}
	return &corev1.Secret{ObjectMeta: meta, Type: s.Type, Data: values}, lacks, nil
}

// keyOf returns the key of a Secret that has a detail as it is: that of its name, unless the key is chosen
// for something else.
func (s *site) keyOf(detail string) string {
	key := detail
	for text, chosen := s.Keys[key]; chosen && !isDetail(text, detail); text, chosen = s.Keys[key] {
		key = "once." + key
	}
	return key
}

// notes returns the details that the annotation of a Secret names, with their keys. Older versions
// wrote names alone, also if the key was chosen for something else: asIs is false for those.
func notes(obj client.Object, do func(detail, key string, asIs bool)) {
	for entry := range strings.SplitSeq(obj.GetAnnotations()[onceAnnotation], ",") {
		if detail, key, ok := strings.Cut(entry, "="); ok {
			do(detail, key, true)
		} else if entry != "" {
			do(entry, entry, false)
		}
	}
}

// byHand reports whether a person has written a key of the former object: it is there, and our field
// manager has not applied it. Of one that we have never applied and that has the label of a set,
// because it was restored, that is not known.
func (s *site) byHand(manager, key string) bool {
	if _, ok := valueOf(s.former, key); !ok {
		return false
	}
	applied := false
	for _, e := range s.former.GetManagedFields() {
		if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.FieldsV1 == nil {
			continue
		}
		applied = true
		var fields fieldpath.Set
		if err := fields.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil || fields.Has(fieldpath.MakePathOrDie("data", key)) {
			return false
		}
	}
	return applied || s.former.GetLabels()[apply.SetLabel] == ""
}

// providing returns the command by which a person provides details.
func (s *site) providing(keys []string) string {
	kind, field := "secret", "stringData"
	if s.ConfigMap != "" {
		kind, field = "configmap", "data"
	}
	namespace := ""
	if s.Namespace != "" {
		namespace = " -n " + s.Namespace
	}
	pairs := make([]string, len(keys))
	for i, key := range keys {
		pairs[i] = fmt.Sprintf("%q:%q", key, "VALUE")
	}
	return fmt.Sprintf(`kubectl%s patch %s %s --type merge -p '{%q:{%s}}'`, namespace, kind, cmp.Or(s.Secret, s.ConfigMap), field, strings.Join(pairs, ","))
}
