// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRelabel(t *testing.T) {
	type labels = map[string]string
	for _, tt := range []struct {
		name           string
		before, wanted labels
		inherited      string
		want           labels
		wantInherited  string
	}{
		{"nothing", nil, nil, "", nil, ""},
		{"put on", labels{"own": "x"}, labels{"team": "shop", "stage": "beta"}, "", labels{"own": "x", "team": "shop", "stage": "beta"}, "stage,team"},
		{"unchanged", labels{"team": "shop"}, labels{"team": "shop"}, "team", labels{"team": "shop"}, "team"},
		{"edited", labels{"team": "mine"}, labels{"team": "shop"}, "team", labels{"team": "shop"}, "team"},
		{"one leaves", labels{"team": "shop", "stage": "beta"}, labels{"team": "shop"}, "stage,team", labels{"team": "shop"}, "team"},
		{"all leave", labels{"own": "x", "team": "shop"}, nil, "team", labels{"own": "x"}, ""},
		{"an own label with the wanted value", labels{"team": "shop"}, labels{"team": "shop"}, "", labels{"team": "shop"}, ""},
		{"an own label stays", labels{"team": "shop"}, nil, "", labels{"team": "shop"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(tt.before)}}
			if tt.inherited != "" {
				ns.Annotations = labels{inheritedAnnotation: tt.inherited}
			}
			for range 2 { // twice is the same as once
				relabel(ns, tt.wanted)
				if got := ns.Annotations[inheritedAnnotation]; !maps.Equal(ns.Labels, tt.want) || got != tt.wantInherited {
					t.Errorf("got labels %v, inherited %q; want %v, inherited %q", ns.Labels, got, tt.want, tt.wantInherited)
				}
			}
		})
	}
}
