// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/step"
)

// An Option configures the test of a step.
type Option func(*settings)

type settings struct {
	scheme   *runtime.Scheme
	crds     []string
	objects  []client.Object
	funcs    *interceptor.Funcs
	failures failure.Table
	declared []condition.Declaration
	given    []any
}

func newSettings(options []Option) *settings {
	s := &settings{scheme: clientgoscheme.Scheme}
	for _, option := range options {
		option(s)
	}
	return s
}

// definitions reads the CRDs.
func (s *settings) definitions(t testing.TB) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	if len(s.crds) == 0 {
		return nil
	}
	crds, err := definitions.Read(s.crds...)
	if err != nil {
		t.Fatalf("ctrlkittest: reading the files of WithCRDs: %v", err)
	}
	return crds
}

// WithScheme sets the scheme. The default is that of client-go, with what the operator has added to
// it.
func WithScheme(scheme *runtime.Scheme) Option { return func(s *settings) { s.scheme = scheme } }

// WithCRDs installs the definitions in files or directories, relative to the directory of the test,
// so that objects are validated and defaulted as in a cluster. Kinds without a definition are
// namespaced, with a status subresource and any fields.
func WithCRDs(paths ...string) Option {
	return func(s *settings) { s.crds = append(s.crds, paths...) }
}

// WithObjects puts objects into the cluster, with their status, and creates their namespaces. An
// owner reference to the object of the step, by kind and name without a UID, is given its UID.
func WithObjects(objects ...client.Object) Option {
	return func(s *settings) { s.objects = append(s.objects, objects...) }
}

// WithInterceptor puts functions between the step and the API server, to make requests fail. They
// also see the requests of the engine for the object.
func WithInterceptor(funcs interceptor.Funcs) Option {
	return func(s *settings) { s.funcs = &funcs }
}

// WithFailures sets how errors are classified, as step.Options.Failures does.
func WithFailures(table failure.Table) Option { return func(s *settings) { s.failures = table } }

// WithConditions declares conditions, such as those of a step, for [NewRequest]. [Do] and [Cleanup]
// know their step.
func WithConditions(declared ...condition.Declaration) Option {
	return func(s *settings) { s.declared = append(s.declared, declared...) }
}

// WithSetup calls a function with the request before the step, as an earlier step would be: to
// [step.Put] what the step looks up.
func WithSetup[T client.Object](prepare func(req *step.Request[T])) Option {
	return func(s *settings) { s.given = append(s.given, prepare) }
}

// prepare calls the functions of WithSetup.
func prepare[T client.Object](s *settings, req *step.Request[T]) error {
	for _, g := range s.given {
		f, ok := g.(func(*step.Request[T]))
		if !ok {
			return fmt.Errorf("ctrlkittest: WithSetup has a %T, and the step is for %T", g, req.Object)
		}
		f(req)
	}
	return nil
}
