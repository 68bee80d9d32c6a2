package sim

import (
	"flag"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// An Option changes what [Run] does.
type Option func(*settings)

type settings struct {
	pairs   int
	seed    uint64
	without oracleSet
	skipped map[FaultKind]string
}

// Pairs adds plans of two faults, chosen by the seed, to the plans of one.
func Pairs(n int) Option { return func(s *settings) { s.pairs = n } }

// Seed chooses other pairs.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// Without switches an oracle off. The reason is printed with the result.
func Without(oracle Oracle, reason string) Option {
	return func(s *settings) { s.without[oracle] = reason }
}

// WithoutFaults leaves out the faults of a kind. The reason is printed with the result.
func WithoutFaults(kind FaultKind, reason string) Option {
	return func(s *settings) { s.skipped[kind] = reason }
}

var planFlag = flag.String("sim.plan", "", "run only this `plan` of a simulation, and print what happened")

func newSettings(options []Option) *settings {
	s := &settings{without: oracleSet{}, skipped: map[FaultKind]string{}}
	for _, o := range options {
		o(s)
	}
	return s
}

// readCRDs reads the definitions of a workload.
func readCRDs(w *Workload) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if len(w.CRDs) == 0 {
		return nil, nil
	}
	options := envtest.CRDInstallOptions{Paths: w.CRDs, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, fmt.Errorf("reading Workload.CRDs: %w", err)
	}
	return options.CRDs, nil
}

// findReference runs a workload without faults, several times, and returns what the others are judged by.
func findReference(t *testing.T, w *Workload, crds []*apiextensionsv1.CustomResourceDefinition, s *settings) (*reference, *Result, error) {
	first, err := runPlan(t, w, crds, Plan{}, nil, s.without)
	if err != nil || len(first.Violations) > 0 {
		return nil, first, err
	}
	r := first.asReference()
	for seed := uint64(1); seed <= learningRuns; seed++ {
		other, err := runPlan(t, w, crds, Plan{Seed: seed}, nil, s.without)
		if err != nil {
			return nil, other, err
		}
		r.learn(other)
	}
	return r, first, nil
}

// learningRuns is how many runs without faults, in other orders, are compared to learn which fields differ anyway.
const learningRuns = 3
