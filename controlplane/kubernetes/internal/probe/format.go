// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// formats are the formats that package builtin knows, by name.
var formats = map[string]func(string) []string{
	"label":         validation.IsDNS1123Label,
	"label1035":     validation.IsDNS1035Label,
	"subdomain":     validation.IsDNS1123Subdomain,
	"subdomainCaps": func(s string) []string { return validation.IsDNS1123SubdomainWithUnderscore(s) },
	"wildcard":      validation.IsWildcardDNS1123Subdomain,
	"labelKey":      content.IsLabelKey,
	"qualifiedName": validation.IsQualifiedName,
	"labelValue":    validation.IsValidLabelValue,
	"configMapKey":  validation.IsConfigMapKey,
	"envVar":        validation.IsEnvVarName,
	"relaxedEnvVar": validation.IsRelaxedEnvVarName,
	"portName":      validation.IsValidPortName,
	"httpHeader":    validation.IsHTTPHeaderName,
	"pathSegment":   content.IsPathSegmentName,
	"ip":            func(s string) []string { return details(validation.IsValidIP(field.NewPath("x"), s)) },
	"cidr":          func(s string) []string { return details(validation.IsValidCIDR(field.NewPath("x"), s)) },
}

// formatOf returns the format that says the same about all texts. It returns nothing if none does,
// or if nothing is refused.
func formatOf(messages map[string][]string) string {
	refused := false
	for _, list := range messages {
		refused = refused || len(list) > 0
	}
	if !refused {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		same := true
		for text, want := range messages {
			if text == "" {
				continue
			}
			got := slices.Clone(formats[name](text))
			want = slices.Clone(want)
			slices.Sort(got)
			slices.Sort(want)
			same = same && slices.Equal(slices.Compact(got), slices.Compact(want))
		}
		if same {
			return name
		}
	}
	return ""
}

func details(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Detail)
	}
	return out
}
