// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

const (
	tokenCanary     = "canary-of-the-token"
	elsewhereCanary = "canary-of-another-namespace"
)

// recordingVariable has the path of the recording, for copies of the test that run plans.
const recordingVariable = "CTRLKIT_TEST_RECORDING"

// The stories of record and replay. The program "vaults" is an operator, which has one mistake with
// the argument "wrong".
func TestReplay(t *testing.T) {
	runScripts(t, "record", testscript.Params{Condition: func(name string) (bool, error) {
		return name == "isolated" && supervisor.CanIsolate() == nil, nil
	}})
}

// A failure on a control plane is recorded, and is a test: it fails with the operator that has
// failed, and passes with the mended one. No value of a Secret is in the file.
func TestRecordedFailureIsATest(t *testing.T) {
	rings.Test(t, "starts a control plane")
	file := os.Getenv(recordingVariable)
	if file == "" {
		file = recordStuckVault(t)
		t.Setenv(recordingVariable, file)
	}
	workload := func(mended bool) sim.Workload {
		return sim.Workload{
			Name: map[bool]string{true: "mended", false: "wrong"}[mended],
			Operator: sim.Manager(func(mgr ctrl.Manager, _ *sim.Process) error {
				return (&vaultOperator{mended: mended}).setUp(mgr)
			}),
		}
	}
	wrong := sim.Explore(t, workload(false), sim.From(file))
	mended := sim.Explore(t, workload(true), sim.From(file))
	if wrong == nil || mended == nil {
		return // a copy of the test
	}
	want := "Vault vaults/main ends as it was recorded: being deleted, held by " + vaultFinalizer + ", Ready=False (NoCredentials)"
	if len(wrong.Findings) != 1 || wrong.Findings[0].Violation.Oracle != oracle.Mended || wrong.Findings[0].Violation.Text != want {
		t.Errorf("the wrong operator: %v, want %s", wrong.Findings, want)
	}
	if len(mended.Findings) > 0 || len(mended.Plans) == 0 {
		t.Errorf("the mended operator: %d plans, %v", len(mended.Plans), mended.Findings)
	}
	t.Logf("%d plans with the mended operator", len(mended.Plans))
}

// recordStuckVault lets the wrong operator get a Vault stuck on a control plane, and records it.
func recordStuckVault(t *testing.T) (file string) {
	t.Helper()
	plane := shared.ForTest(t)
	c := newVaultClient(t, plane)
	for _, ns := range []string{"vaults", "vaults-elsewhere"} {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	secret := func(namespace, name, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"token": value}}
	}
	credentials := secret("vaults", "credentials", "not recorded")
	must(t, c.Create(t.Context(), credentials))
	must(t, c.Create(t.Context(), secret("vaults", "main-token", tokenCanary)))
	must(t, c.Create(t.Context(), secret("vaults-elsewhere", "other", elsewhereCanary)))
	v := newVault("vaults", "main")
	v.SetAnnotations(map[string]string{"note": "as " + elsewhereCanary})
	must(t, unstructured.SetNestedField(v.Object, "main-token", "spec", "token"))
	must(t, c.Create(t.Context(), v))
	startVaults(t, plane)
	awaitReady(t, c, "Open")
	must(t, c.Delete(t.Context(), credentials))
	must(t, c.Delete(t.Context(), newVault("vaults", "main")))
	awaitReady(t, c, "NoCredentials")

	file = filepath.Join(t.TempDir(), "stuck.yaml")
	_, said, err := execute(t, "", "record", "-o", file, "vault/main", "-n", "vaults", "--kubeconfig", plane.Kubeconfig(), "--endpoint", noEndpoint)
	must(t, err)
	text, err := os.ReadFile(file)
	must(t, err)
	for _, value := range []string{tokenCanary, elsewhereCanary} {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))[:20], base64.StdEncoding.EncodeToString([]byte("vault:" + value))[:20]} {
			if strings.Contains(string(text), form) || strings.Contains(said, form) {
				t.Errorf("the recording has %s of %s:\n%s\n%s", form, value, said, text)
			}
		}
	}
	checkVaultRecording(t, file, c)
	if !strings.Contains(said, "Vault vaults/main: being deleted, held by "+vaultFinalizer+", Ready=False (NoCredentials)\n") || strings.Contains(said, "still in the file") {
		t.Errorf("it says:\n%s", said)
	}
	return file
}

// checkVaultRecording checks that what belongs to the Vault is in the file, as it is in the
// cluster.
func checkVaultRecording(t *testing.T, file string, c client.Client) {
	t.Helper()
	r, err := recording.Read(file)
	must(t, err)
	has := map[string]*unstructured.Unstructured{}
	for _, obj := range r.Objects {
		has[recording.SubjectOf(obj).String()] = obj
	}
	for _, name := range []string{
		"Vault vaults/main", "ConfigMap vaults/main-settings", "Secret vaults/main-token", "Namespace vaults",
		"CustomResourceDefinition vaults.recorded.ctrlkit.dev", "CustomResourceDefinition keys.recorded.ctrlkit.dev",
	} {
		if has[name] == nil {
			t.Errorf("the recording lacks %s", name)
		}
	}
	if len(has) != 6 {
		t.Errorf("the recording has more than what belongs to the Vault: %v", has)
	}
	v := newVault("vaults", "main")
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(v), v))
	if got := has["Vault vaults/main"]; got.GetUID() != v.GetUID() || got.GetResourceVersion() != v.GetResourceVersion() || got.GetFinalizers()[0] != vaultFinalizer {
		t.Errorf("the Vault is not as it was: %v, want %v", got, v)
	}
}

func newVaultClient(t *testing.T, plane *controlplane.ControlPlane) client.Client {
	t.Helper()
	crds, err := definitions.Read("testdata/record/crds.yaml")
	must(t, err)
	d, err := dynamic.NewForConfig(plane.Config())
	must(t, err)
	must(t, definitions.Install(t.Context(), d, crds))
	eventually(t, "the kind is served", func(ctx context.Context) bool {
		_, err := d.Resource(vaultKind.GroupVersion().WithResource("vaults")).List(ctx, metav1.ListOptions{})
		return err == nil
	})
	c, err := client.New(plane.Config(), client.Options{})
	must(t, err)
	return c
}

// startVaults runs the wrong operator until the test ends.
func startVaults(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	mgr, err := ctrl.NewManager(plane.Config(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	must(t, (&vaultOperator{}).setUp(mgr))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// awaitReady waits for the reason of the Vault's condition.
func awaitReady(t *testing.T, c client.Client, reason string) {
	t.Helper()
	eventually(t, "the Vault says "+reason, func(ctx context.Context) bool {
		v := newVault("vaults", "main")
		if err := c.Get(ctx, client.ObjectKeyFromObject(v), v); apierrors.IsNotFound(err) {
			t.Fatal("the Vault is gone")
		}
		return strings.Contains(recording.StateOf(v).String(), "("+reason+")")
	})
}

func eventually(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(t.Context()); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// What the operator says of its last reconciles is in the file, and if it does not answer, that is
// said.
func TestRecordAsksTheOperator(t *testing.T) {
	d := newDemo(t)
	file := filepath.Join(t.TempDir(), "x.yaml")
	_, said, err := execute(t, "", "record", "-o", file, "rwexternal/waits", "--kubeconfig", d.kubeconfig, "--endpoint", listen(t, explained(t)))
	must(t, err)
	r, err := recording.Read(file)
	must(t, err)
	if len(r.Reports) != 1 || !strings.Contains(said, "1 report of the operator") {
		t.Fatalf("%d reports:\n%s", len(r.Reports), said)
	}
	var report explanation.Report
	text, err := json.Marshal(r.Reports[0])
	must(t, err)
	must(t, json.Unmarshal(text, &report))
	if len(report.Controllers) != 1 || len(report.Controllers[0].Runs) != 1 || report.Controllers[0].Steps[0].Waits[0].For != "Secret default/missing" {
		t.Errorf("the report is %s", text)
	}
	_, said, err = execute(t, "", "record", "-o", file, "rwexternal/waits", "--kubeconfig", d.kubeconfig, "--endpoint", noEndpoint)
	must(t, err)
	if !strings.Contains(said, "The operator's last reconciles are not in it: the operator was not asked") {
		t.Errorf("it says:\n%s", said)
	}
}

// Of all objects of a kind, those that are not ready are what the recording is about.
func TestRecordKinds(t *testing.T) {
	d := newDemo(t)
	text, _, err := execute(t, "", "record", "-o", "-", "--kinds", "rwexternal", "--kubeconfig", d.kubeconfig, "--endpoint", noEndpoint)
	must(t, err)
	file := filepath.Join(t.TempDir(), "x.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	r, err := recording.Read(file)
	must(t, err)
	var objects []string
	for _, obj := range r.Objects {
		objects = append(objects, recording.SubjectOf(obj).String())
	}
	want := []string{"RWExternal default/waits", "Namespace default", "RWExternal default/divide", "CustomResourceDefinition rwexternals.demo.ctrlkit.dev"}
	if diff := cmp.Diff(want, objects); diff != "" || len(r.Subjects) != 1 || r.Subjects[0].Name != "waits" {
		t.Errorf("subjects %v, objects -want +got:\n%s", r.Subjects, diff)
	}
}
