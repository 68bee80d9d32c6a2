// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func kindOf(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

func podWith(fields string) string {
	return "spec: {containers: [{name: c, image: i}], " + fields + "}"
}

func parse(t *testing.T, text string) object {
	t.Helper()
	content := map[string]any{}
	must(t, yaml.Unmarshal([]byte(text), &content))
	return content
}

// A rule that was learned from one valid object is no rule for an object with another discriminator.
func TestRulesDependOnOtherFields(t *testing.T) {
	const affinity = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, %s}]}]}}}"
	pod := kindOf("", "Pod")
	container := func(security string) string {
		return "spec: {containers: [{name: c, image: i, securityContext: {" + security + "}}]}"
	}
	for _, c := range []struct {
		name, text, want string
		kind             schema.GroupVersionKind
	}{
		{"the default seccomp profile", container("seccompProfile: {type: RuntimeDefault}"), "", pod},
		{"a local seccomp profile", container("seccompProfile: {type: Localhost}"), "localhostProfile", pod},
		{"a privileged container", container("privileged: true"), "", pod},
		{"a key that exists", podWith(strings.Replace(affinity, "%s", "operator: Exists", 1)), "", pod},
		{"a key in nothing", podWith(strings.Replace(affinity, "%s", "operator: In", 1)), "values", pod},
		{"options of DNS", podWith("dnsPolicy: ClusterFirst, dnsConfig: {options: [{name: ndots}]}"), "", pod},
		{"no DNS", podWith("dnsPolicy: None, dnsConfig: {options: [{name: ndots}]}"), "nameservers", pod},
		{"a port without a name", "subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 1}]}]", "", kindOf("", "Endpoints")},
		{"two ports without names", "subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 1}, {port: 2}]}]", "ports[0].name", kindOf("", "Endpoints")},
	} {
		errs := Validate(c.kind, parse(t, c.text))
		if got := errs.ToAggregate(); c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
}

// Who runs gates of its own removes them from Pods that wait for it.
func TestSchedulingGatesCanBeRemoved(t *testing.T) {
	old := parse(t, podWith("schedulingGates: [{name: a}, {name: b}]"))
	for _, c := range []struct{ fields, want string }{
		{"schedulingGates: [{name: b}]", ""},
		{"nodeSelector: {zone: z}", ""},
		{"schedulingGates: [{name: a}, {name: b}, {name: c}]", "spec.schedulingGates[2].name: Forbidden: only deletion is allowed"},
		{"hostname: h", "spec: Forbidden: pod updates may not change"},
	} {
		err := ValidateUpdate(kindOf("", "Pod"), parse(t, podWith(c.fields)), old, "").ToAggregate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.fields, err, c.want)
		}
	}
}
