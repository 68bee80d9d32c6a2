// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// A listener is a test that records what is reported.
type listener struct {
	testing.TB
	errors  []string
	helpers int
}

func (l *listener) Helper() { l.helpers++ }
func (l *listener) Errorf(format string, args ...any) {
	l.errors = append(l.errors, fmt.Sprintf(format, args...))
}

func TestCheck(t *testing.T) {
	nameless := newDatabase(unready())
	nameless.Kind, nameless.Namespace = "", ""
	const sayWhy = ` status.conditions[0] "Ready" is False, and nothing says what comes next: ` +
		`set Reconciling if the operator continues by itself, or Stalled if a person must act [says-why]`
	for _, tt := range []struct {
		name  string
		check func(testing.TB)
		want  []string
	}{
		{"right", func(t testing.TB) { ctrlkittest.CheckConditions(t, newDatabase(ready())) }, nil},
		{"wrong", func(t testing.TB) { ctrlkittest.CheckConditions(t, newDatabase(unready())) }, []string{"Database default/db:" + sayWhy}},
		{"wrong, of a kind that is not known, in no namespace", func(t testing.TB) { ctrlkittest.CheckConditions(t, nameless) },
			[]string{"ctrlkittest_test.database db:" + sayWhy}},
		{"a right change", func(t testing.TB) {
			ctrlkittest.CheckConditionChange(t, newDatabase(unready()), newDatabase(at(ready(), time.Second)))
		}, nil},
		{"a wrong change", func(t testing.TB) {
			ctrlkittest.CheckConditionChange(t, newDatabase(ready()), newDatabase(about(ready(), 1)))
		},
			[]string{`Database default/db: status.conditions[0] "Ready": observedGeneration fell from 3 to 1: ` +
				`copy metadata.generation of the object that was reconciled, and write with its resourceVersion [never-back]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l listener
			tt.check(&l)
			if diff := cmp.Diff(tt.want, l.errors); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
			if l.helpers == 0 {
				t.Error("the place that is reported is not that of the caller")
			}
		})
	}
}
