// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"
)

func TestParseParts(t *testing.T) {
	tests := []struct {
		names string
		want  Parts
	}{
		{"", 0},
		{"none", 0},
		{"all", AllParts},
		{"scheduler", PartScheduler},
		{"controller-manager scheduler", PartControllerManager | PartScheduler},
		{"nodes", AllParts}, // a Node needs both others to be of use
	}
	for _, test := range tests {
		got, err := ParseParts(strings.Fields(test.names))
		if err != nil || got != test.want {
			t.Errorf("ParseParts(%q) = %v, %v; want %v", test.names, got, err, test.want)
		}
	}
}

func TestParsePartsNamesTheUnknown(t *testing.T) {
	_, err := ParseParts([]string{"scheduler", "kubelet"})
	if err == nil || !strings.Contains(err.Error(), `"kubelet"`) || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("err = %v, want one that names kubelet and what there is", err)
	}
}

func TestPartsReadBack(t *testing.T) {
	for parts := Parts(0); parts <= AllParts; parts++ {
		got, err := ParseParts(strings.Split(parts.String(), ","))
		if err != nil || got != parts.withNeeded() {
			t.Errorf("%s reads back as %s, %v", parts, got, err)
		}
	}
}
