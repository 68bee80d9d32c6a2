// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// The head of a file says its version.
const (
	group      = "recording.ctrlkit.dev"
	apiVersion = group + "/v1"
	headKind   = "Recording"
	reportKind = "Report"
)

const introduction = `# What an operator sees of a cluster, recorded by "ctrlkit record". Values of Secrets are stand-ins; read the rest
# before you attach the file to a bug report. "ctrlkit replay FILE OPERATOR" and sim.From("FILE") run an operator on it.
`

// A Recording is what an operator sees of a cluster.
type Recording struct {
	Head

	// Reports are what the operator has said about subjects: each is an explanation.Report.
	Reports []map[string]any

	// Objects are the recorded ones: the subjects first, and definitions last.
	Objects []*unstructured.Unstructured
}

// A Head is what a file says about itself.
type Head struct {
	// Recorded is when the objects were read.
	Recorded time.Time `json:"recorded"`

	// Subjects are the objects that the recording is about.
	Subjects []Subject `json:"subjects,omitempty"`

	// Unread is what could not be read, each with the reason.
	Unread []string `json:"unread,omitempty"`

	// Left names the values of Secrets that are still in the file, because they are names, too.
	Left []string `json:"left,omitempty"`

	// Unsure names the values of Secrets that may still be in the file, in a form that is not known.
	Unsure []string `json:"unsure,omitempty"`
}

// A Subject is an object that a recording is about.
type Subject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String returns the kind and the name.
func (s Subject) String() string {
	return s.Kind + " " + strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
}

// SubjectOf returns the subject that an object is.
func SubjectOf(obj *unstructured.Unstructured) Subject {
	return Subject{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}
}

// document is a part of a file that is no object.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Write writes a recording as YAML: the head, the reports, and the objects.
func (r *Recording) Write(w io.Writer) error {
	parts := []any{struct {
		document
		Head
	}{document{apiVersion, headKind}, r.Head}}
	for _, report := range r.Reports {
		parts = append(parts, map[string]any{"apiVersion": apiVersion, "kind": reportKind, "report": report})
	}
	r.sort()
	for _, obj := range r.Objects {
		parts = append(parts, obj.Object)
	}
	for i, part := range parts {
		text, err := printable.YAML(part)
		if err != nil {
			return fmt.Errorf("encoding the recording: %w", err)
		}
		before := "---\n"
		if i == 0 {
			before = introduction
		}
		if _, err := io.WriteString(w, before+text); err != nil {
			return fmt.Errorf("writing the recording: %w", err)
		}
	}
	return nil
}

// sort orders the objects: subjects, others, definitions.
func (r *Recording) sort() {
	rank := func(obj *unstructured.Unstructured) int {
		switch {
		case slices.Contains(r.Subjects, SubjectOf(obj)):
			return 0
		case isDefinition(obj):
			return 2
		}
		return 1
	}
	slices.SortStableFunc(r.Objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

func isDefinition(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "CustomResourceDefinition" && obj.GroupVersionKind().Group == apiextensionsv1.GroupName
}

// Is reports whether a file begins as a recording does. A file that can't be read does not.
func Is(file string) bool {
	content, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	first, err := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))).Read()
	if err != nil {
		return false
	}
	var head document
	return yaml.Unmarshal(first, &head) == nil && head.Kind == headKind && strings.HasPrefix(head.APIVersion, group+"/")
}

// Read reads a recording.
func Read(file string) (*Recording, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	r := &Recording{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.add(text, number == 1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, number, err)
		}
	}
	if r.Recorded.IsZero() {
		return nil, fmt.Errorf("%s is empty: make a recording with ctrlkit record", file)
	}
	return r, nil
}

// add adds a document of a file, of which the first one is the head.
func (r *Recording) add(text []byte, first bool) error {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	var content map[string]any // whole numbers become int64, as the API machinery expects
	if err := utiljson.Unmarshal(asJSON, &content); err != nil {
		return errors.New("not an object")
	}
	obj := &unstructured.Unstructured{Object: content}
	switch {
	case first:
		if obj.GroupVersionKind().Group != group || obj.GetKind() != headKind {
			return errors.New("this is no recording of ctrlkit record: its first document has another kind than " + headKind)
		}
		if obj.GetAPIVersion() != apiVersion {
			return fmt.Errorf("the recording has the version %s, and this ctrlkit reads %s: use the ctrlkit that has written it", obj.GetAPIVersion(), apiVersion)
		}
		if err := yaml.Unmarshal(text, &r.Head); err != nil {
			return err
		}
		if r.Recorded.IsZero() {
			return errors.New("recorded is missing: it is when the objects were read")
		}
	case obj.GetAPIVersion() == apiVersion && obj.GetKind() == reportKind:
		report, _ := content["report"].(map[string]any)
		r.Reports = append(r.Reports, report)
	case obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "":
		return errors.New("apiVersion, kind or metadata.name is missing")
	default:
		r.Objects = append(r.Objects, obj)
	}
	return nil
}

// Definitions returns the recorded definitions, as a user would create them.
func (r *Recording) Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, obj := range r.Objects {
		if !isDefinition(obj) {
			continue
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
			return nil, fmt.Errorf("reading the recorded definition %s: %w", obj.GetName(), err)
		}
		d.ObjectMeta = metav1.ObjectMeta{Name: d.Name, Labels: d.Labels, Annotations: d.Annotations}
		d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		list = append(list, d)
	}
	return list, nil
}

// Find returns the recorded object that a subject is, or nil.
func (r *Recording) Find(s Subject) *unstructured.Unstructured {
	for _, obj := range r.Objects {
		if SubjectOf(obj) == s {
			return obj
		}
	}
	return nil
}
