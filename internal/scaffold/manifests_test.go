// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// The namespace enforces what the Pod of the operator keeps, and the network policy is about that
// Pod and its ports.
func TestManifestsGoTogether(t *testing.T) {
	project, api := guestbook(t.TempDir())
	plan, err := Init(project, api, requirements)
	must(t, err)
	files := map[string][]byte{}
	for _, c := range plan.Changes {
		files[c.Path] = c.New
	}
	documents := bytes.SplitN(files["config/manager/manager.yaml"], []byte("\n---\n"), 2)
	var namespace corev1.Namespace
	var deployment appsv1.Deployment
	var policy networkingv1.NetworkPolicy
	for into, text := range map[any][]byte{&namespace: documents[0], &deployment: documents[1], &policy: files["config/network-policy/allow-metrics-traffic.yaml"]} {
		must(t, yaml.UnmarshalStrict(text, into))
	}
	if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("the namespace enforces %q", got)
	}
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	restricted := container.SecurityContext
	if !ptr.Deref(pod.Spec.SecurityContext.RunAsNonRoot, false) || pod.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		ptr.Deref(restricted.AllowPrivilegeEscalation, true) || len(restricted.Capabilities.Drop) != 1 || restricted.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the Pod is not restricted: %+v, %+v", pod.Spec.SecurityContext, restricted)
	}
	for key, value := range policy.Spec.PodSelector.MatchLabels {
		if pod.Labels[key] != value {
			t.Errorf("the policy selects %s=%s, the Pod has %q", key, value, pod.Labels[key])
		}
	}
	if policy.Namespace != deployment.Namespace || len(policy.Spec.PodSelector.MatchLabels) == 0 {
		t.Errorf("the policy is of namespace %q and selects %v", policy.Namespace, policy.Spec.PodSelector.MatchLabels)
	}
	metrics := policy.Spec.Ingress[0]
	if len(metrics.From) != 1 || metrics.From[0].NamespaceSelector == nil {
		t.Errorf("metrics are open to %+v", metrics.From)
	}
	if port := metrics.Ports[0].Port.IntVal; container.Ports[1].Name != "metrics" || container.Ports[1].ContainerPort != port {
		t.Errorf("the policy admits port %d, the Pod has %+v", port, container.Ports)
	}
	for _, test := range []struct{ path, want string }{
		{"config/default/kustomization.yaml", "- ../network-policy\n"},
		{"config/network-policy/kustomization.yaml", "- allow-metrics-traffic.yaml\n"},
		{"cmd/main.go", "SecureMetrics: filters.WithAuthenticationAndAuthorization"},
	} {
		if !strings.Contains(string(files[test.path]), test.want) {
			t.Errorf("%s lacks %q:\n%s", test.path, test.want, files[test.path])
		}
	}
	workflow := string(files[".github/workflows/test.yml"])
	if n := strings.Count(workflow, "persist-credentials: false"); n == 0 || n != strings.Count(workflow, "uses: actions/checkout@") {
		t.Errorf("a checkout keeps its credentials:\n%s", workflow)
	}
}

// The role of init has the paths that create api adds to that of kubebuilder, which gets them
// once. A role of another form is left, with a note.
func TestReadersOfMetricsReadReports(t *testing.T) {
	v := &values{}
	own, err := v.render(metricsReader.template)
	must(t, err)
	for _, path := range reports {
		if !strings.Contains(string(own), path) {
			t.Errorf("the role of init lacks %s:\n%s", path, own)
		}
	}
	for _, tt := range []struct {
		content string
		missing bool
	}{
		{string(own), false}, {"- nonResourceURLs:\n  - \"/debug/ctrlkit/explain\"\n", false}, {"- nonResourceURLs: [/metrics]\n", true},
	} {
		if got, missing, err := readReports([]byte(tt.content)); err != nil || string(got) != tt.content || (len(missing) > 0) != tt.missing {
			t.Errorf("%q: %q, %q, %v", tt.content, got, missing, err)
		}
	}
}
