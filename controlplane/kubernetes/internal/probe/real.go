// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// sample is a valid object, as a client sends it and as the real server stores it.
type sample struct {
	index  int
	gvk    schema.GroupVersionKind
	kind   served
	sent   object
	stored object
}

func (s *sample) id() string { return s.gvk.Group + "/" + s.gvk.Kind }

// readSamples reads a file of YAML documents.
func readSamples(path string) ([]*sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []*sample
	for i, document := range strings.Split(string(data), "\n---\n") {
		s := &sample{index: i}
		if err := yaml.Unmarshal([]byte(document), &s.sent); err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		apiVersion, _ := s.sent["apiVersion"].(string)
		kind, _ := s.sent["kind"].(string)
		s.gvk = schema.FromAPIVersionAndKind(apiVersion, kind)
		k, ok := kinds[s.id()]
		if !ok {
			return nil, fmt.Errorf("document %d: no strategy for %s", i, s.id())
		}
		s.kind = k
		created, errs, err := s.create(s.sent)
		if err == nil && len(errs) > 0 {
			err = errs.ToAggregate()
		}
		if err != nil {
			return nil, fmt.Errorf("document %d, %s: %w", i, s.id(), err)
		}
		if s.stored, err = s.encode(created); err != nil {
			return nil, err
		}
		if created, err = s.decode(s.stored); err != nil { // what is read back gets defaults again
			return nil, err
		}
		if s.stored, err = s.encode(created); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// decode returns an object of the internal version, with defaults.
func (s *sample) decode(content object) (runtime.Object, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	obj, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), data)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetUID("00000000-0000-0000-0000-000000000001")
	m.SetResourceVersion("1")
	m.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0).UTC()))
	return obj, nil
}

func (s *sample) encode(obj runtime.Object) (object, error) {
	data, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(s.gvk.GroupVersion()), obj)
	if err != nil {
		return nil, err
	}
	var content object
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	if status, ok := content["status"].(object); ok {
		delete(status, "lastPhaseTransitionTime") // it is the time of the run
	}
	return content, nil
}

// context returns the context of a request.
func (s *sample) context(verb, subresource string) context.Context {
	ctx := request.NewDefaultContext()
	if !s.kind.main.NamespaceScoped() {
		ctx = request.WithNamespace(ctx, "")
	}
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: s.gvk.Group, APIVersion: s.gvk.Version,
		Resource: s.kind.resource, Subresource: subresource,
	})
}

// create returns what the real server says about a new object. err is about an object that cannot
// be decoded.
func (s *sample) create(content object) (runtime.Object, field.ErrorList, error) {
	obj, err := s.decode(content)
	if err != nil {
		return nil, nil, err
	}
	ctx := s.context("create", "")
	s.kind.main.PrepareForCreate(ctx, obj)
	return obj, validated(ctx, s.kind.main, obj, nil, s.kind.main.Validate(ctx, obj), operation.Create), nil
}

// validated returns the errors of a strategy with those of the validation that its types declare, as
// the real server does: these replace some of the others.
func validated(ctx context.Context, strategy any, obj, old runtime.Object, errs field.ErrorList, by operation.Type) field.ErrorList {
	if declares, ok := strategy.(rest.DeclarativeValidationStrategy); ok {
		return declares.ValidateDeclaratively(ctx, obj, old, errs, by, declares.DeclarativeValidationConfig(ctx, obj, old))
	}
	return errs
}

// update returns what the real server says about a change of the stored object.
func (s *sample) update(old, content object, subresource string) (runtime.Object, field.ErrorList, error) {
	before, err := s.decode(old)
	if err != nil {
		return nil, nil, err
	}
	obj, err := s.decode(content)
	if err != nil {
		return nil, nil, err
	}
	var strategy rest.RESTUpdateStrategy = s.kind.main
	if subresource == "status" {
		strategy = s.kind.status
	}
	ctx := s.context("update", subresource)
	strategy.PrepareForUpdate(ctx, obj, before)
	return obj, validated(ctx, strategy, obj, before, strategy.ValidateUpdate(ctx, obj, before), operation.Update), nil
}
