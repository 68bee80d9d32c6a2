// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Details are what there is to publish, by key.
type Details struct {
	// Values are known each time, such as those that an external system returns when it is asked.
	Values map[string][]byte
	// Once are those that are known only now, such as a password that is returned when it is made.
	// They are kept in the first Secret, under their own keys, beside what is known later.
	Once map[string][]byte
	// Partial says that more details follow, such as after what is known once has been kept: a key that
	// can't be made yet is no error.
	Partial bool
}

// A Target is a Secret or a ConfigMap to which details are published. It belongs to the object.
type Target struct {
	// Secret or ConfigMap is its name: one of them is set.
	Secret, ConfigMap string
	// Namespace is that of the object if it is empty. Another one needs Options.Elsewhere, and the
	// consent of that Namespace: see [FromAnnotation].
	Namespace string
	// Keys are the keys of the target, each with a template of text/template over the details as
	// strings: {"url": "https://{{.host}}:{{.port}}"}. A Secret without Keys has all details under their
	// own keys. A ConfigMap needs Keys.
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

// A lack is a key of a target that can't be made.
type lack struct{ target, key, detail string }

func (l lack) String() string { return fmt.Sprintf("%s: key %s needs %s", l.target, l.key, l.detail) }

// render returns the object of a target, and the keys that can't be made of the details. Of those,
// the values of the former object are kept: who uses them loses nothing.
func (t *Target) render(details map[string][]byte, public []string, once map[string][]byte, former client.Object) (client.Object, []lack, error) {
	if t.ConfigMap != "" {
		details = maps.Clone(details)
		maps.DeleteFunc(details, func(key string, _ []byte) bool { return !slices.Contains(public, key) })
	}
	values, lacks := make(map[string][]byte, len(details)), []lack(nil)
	if len(t.Keys) == 0 {
		maps.Copy(values, details)
	}
	for _, key := range slices.Sorted(maps.Keys(t.Keys)) {
		value, missing, err := execute(key, t.Keys[key], details)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s: key %s: %w", t.name(), key, err)
		case missing != "":
			lacks = append(lacks, lack{t.name(), key, missing})
			if value, ok := valueOf(former, key); ok {
				values[key] = value
			}
		default:
			values[key] = value
		}
	}
	meta := metav1.ObjectMeta{Namespace: t.Namespace, Name: cmp.Or(t.Secret, t.ConfigMap), Labels: t.Labels, Annotations: t.Annotations}
	if t.ConfigMap != "" {
		texts := make(map[string]string, len(values))
		for key, value := range values {
			texts[key] = string(value)
		}
		return &corev1.ConfigMap{ObjectMeta: meta, Data: texts}, lacks, nil
	}
	if len(once) > 0 {
		meta.Annotations = maps.Clone(meta.Annotations)
		if meta.Annotations == nil {
			meta.Annotations = make(map[string]string, 1)
		}
		meta.Annotations[OnceAnnotation] = strings.Join(slices.Sorted(maps.Keys(once)), ",")
		for key := range once {
			if _, taken := t.Keys[key]; !taken {
				values[key] = details[key]
			}
		}
	}
	return &corev1.Secret{ObjectMeta: meta, Type: t.Type, Data: values}, lacks, nil
}

// noDetail finds the name of a detail in the error of a template, which has no value of one.
var noDetail = regexp.MustCompile(`map has no entry for key "([^"]*)"`)

// execute returns the text of a template, or the detail that it lacks.
func execute(key, text string, details map[string][]byte) (value []byte, missing string, err error) {
	tmpl, err := template.New(key).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, "", err
	}
	texts := make(map[string]string, len(details))
	for key, value := range details {
		texts[key] = string(value)
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, texts); err != nil {
		if found := noDetail.FindStringSubmatch(err.Error()); found != nil {
			return nil, found[1], nil
		}
		// The errors of functions, such as index and slice, may quote their arguments.
		return nil, "", errors.New("its template can't be executed")
	}
	return []byte(b.String()), "", nil
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
