// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

var scaleKind = schema.GroupKind{Group: "autoscaling", Kind: "Scale"}

// The first of what is allocated to Services.
const (
	firstNodePort = 30000
	clusterNet    = "10.0."
)

// allocate hands out what is unique in a cluster: addresses and ports of Services.
func (s *Server) allocate(kind string) string {
	s.clusterIPs++
	if kind == "nodePort" {
		return strconv.Itoa(firstNodePort + s.clusterIPs)
	}
	return clusterNet + strconv.Itoa(s.clusterIPs/250) + "." + strconv.Itoa(s.clusterIPs%250+2)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// compareVersionNames orders v1alpha1 < v1beta1 < v1 < v2.
func compareVersionNames(a, b string) int { return kubeversion.CompareKubeAwareVersionStrings(a, b) }
