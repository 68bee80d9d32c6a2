// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit/handlers"
)

func TestMistakesOfRegistrations(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		type unknown struct{ corev1.ConfigMap }
		_, err := w.registry.Register(
			handlers.Handler[*corev1.ConfigMap]{Name: "nothing"},
			handlers.Handler[*unknown]{Name: "kind", OnChange: func(context.Context, *unknown) error { return nil }},
			nil,
		)
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{`handler "nothing": it has neither`, `handler "kind"`, "register it with the scheme", "handler 3 is nil"} {
			if !contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if kinds := w.registry.Kinds(); len(kinds) != 0 {
			t.Errorf("kinds %v, want none", kinds)
		}
	})
}

func contains(text, part string) bool { return strings.Contains(text, part) }
