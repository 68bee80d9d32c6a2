// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// refusal is a field error of the real server.
type refusal struct {
	Type   field.ErrorType `json:"type"`
	Path   string          `json:"path"`
	Detail string          `json:"detail,omitempty"`
}

func refusals(errs field.ErrorList) []refusal {
	var out []refusal
	for _, e := range errs {
		// What follows the first line is the difference between Go values.
		detail, _, _ := strings.Cut(e.Detail, "\n")
		out = append(out, refusal{e.Type, e.Field, detail})
	}
	slices.SortFunc(out, func(a, b refusal) int {
		return strings.Compare(a.Path+"\x00"+string(a.Type)+a.Detail, b.Path+"\x00"+string(b.Type)+b.Detail)
	})
	return slices.Compact(out)
}

// answer is what the real server says about a probe.
type answer struct {
	probe
	create, update []refusal
	undecodable    bool
	unchanged      bool // the stored object does not change
	becomes        any  // the value with which the field is stored when the change removes it
}

// record is a field of a sample with the answers to its probes.
type record struct {
	place
	sample  *sample
	answers []answer
}

// templates are the paths of the Pod specs in other kinds. The rules of Pods hold in them.
var templates = map[string]string{
	"apps/Deployment": "spec.template.spec", "apps/ReplicaSet": "spec.template.spec", "apps/StatefulSet": "spec.template.spec",
	"apps/DaemonSet": "spec.template.spec", "batch/Job": "spec.template.spec", "batch/CronJob": "spec.jobTemplate.spec.template.spec",
}

// inTemplate reports whether a path is in the Pod spec of a template.
func inTemplate(id, path string) bool {
	prefix, ok := templates[id]
	return ok && strings.HasPrefix(path, prefix+".")
}

// run makes all probes of a sample.
func (s *sample) run() ([]record, error) {
	typed, err := legacyscheme.Scheme.New(s.gvk)
	if err != nil {
		return nil, err
	}
	var all []place
	places(reflect.TypeOf(typed).Elem(), s.stored, nil, &all)
	all = slices.DeleteFunc(all, func(p place) bool { // one field shows whether templates may change
		return inTemplate(s.id(), p.general()) && !strings.HasSuffix(p.general(), ".containers[].image")
	})
	out, errs := make([]record, len(all)), make([]error, len(all))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var asking sync.WaitGroup
	for i, p := range all {
		free <- struct{}{}
		asking.Go(func() {
			out[i], errs[i] = s.askAll(p)
			<-free
		})
	}
	asking.Wait()
	return out, errors.Join(errs...)
}

// askAll makes all probes of a field.
func (s *sample) askAll(p place) (record, error) {
	r := record{place: p, sample: s}
	for _, change := range changes(p) {
		a, err := s.ask(change)
		if err != nil {
			return r, fmt.Errorf("%s, %s = %s: %w", s.id(), p, change.key(), err)
		}
		r.answers = append(r.answers, a)
	}
	return r, nil
}

// ask asks the real server about a change of the stored sample, as a new object and as an update.
func (s *sample) ask(change probe) (a answer, err error) {
	a.probe = change
	defer func() {
		if recover() != nil { // as for a Job with a success policy whose completions are removed: the real server answers 500
			a, err = answer{probe: change, undecodable: true}, nil
		}
	}()
	content := change.apply(s.stored)
	created, errs, err := s.create(content)
	if err != nil {
		a.undecodable = true
		return a, nil
	}
	a.create = refusals(errs)
	if change.value == nil && len(errs) == 0 {
		stored, err := s.encode(created)
		if err != nil {
			return a, err
		}
		a.becomes = change.in(stored)
	}
	after, errs, err := s.update(s.stored, content, "")
	if err != nil {
		return a, err
	}
	a.update = refusals(errs)
	if len(a.update) == 0 {
		stored, err := s.encode(after)
		if err != nil {
			return a, err
		}
		a.unchanged = same(withoutMetadata(stored), withoutMetadata(s.stored))
	}
	return a, nil
}

// onlyUpdate returns the refusals of an update that a new object does not meet.
func (a answer) onlyUpdate() []refusal {
	return slices.DeleteFunc(slices.Clone(a.update), func(r refusal) bool { return slices.Contains(a.create, r) })
}

func withoutMetadata(content object) object {
	out := maps.Clone(content)
	delete(out, "metadata")
	return out
}
