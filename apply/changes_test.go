// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A row is one of testdata/changes.txt: its lines by their first words.
type row map[string]string

func changeRows(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile("testdata/changes.txt")
	must(t, err)
	var rows []row
	for block := range strings.SplitSeq(string(data), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		lines := strings.Split(strings.TrimSpace(block), "\n")
		r := row{"name": lines[0]}
		for _, line := range lines[1:] {
			word, rest, _ := strings.Cut(line, ": ")
			r[word] = rest
		}
		rows = append(rows, r)
	}
	return rows
}

// What becomes of each change is what the table says, and what it must not touch stays: the API server
// in memory and the real one agree.
func TestChanges(t *testing.T) {
	runChanges(t, func(*testing.T, int) *cluster { return newCluster(t) })
}

// TestChangesOnRealServer has one control plane for all of the tests that need a real API server.
func TestChangesOnRealServer(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := startShopPlane(t, controlplane.PartControllerManager)
	config := rest.CopyConfig(plane.Config())
	config.QPS = -1
	start := func(t *testing.T, name string) *cluster {
		c := connect(t, config, name)
		c.patience = 20 * time.Second
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})
		return c
	}
	runChanges(t, func(t *testing.T, n int) *cluster { return start(t, fmt.Sprintf("change-%d", n)) })
	t.Run("orphaning", func(t *testing.T) { testOrphaning(t, start) })
	t.Run("remedies", func(t *testing.T) { testRemedies(t, plane, start) })
	t.Run("orphans", func(t *testing.T) { testOrphans(t, plane, start) })
	t.Run("copies", func(t *testing.T) { testCopiedNamespace(t, plane, start) })
	t.Run("policies", func(t *testing.T) { testPolicies(t, start(t, "policies")) })
}

// ReplaceOrphaning replaces a workload and keeps its Pods, and refuses what would not select them.
func TestReplaceOrphaning(t *testing.T) {
	testOrphaning(t, func(t *testing.T, _ string) *cluster { return newCluster(t) })
}

func testOrphaning(t *testing.T, start func(*testing.T, string) *cluster) {
	t.Helper()
	for i, r := range changeRows(t) {
		var want string
		switch kind, _, _ := strings.Cut(r["name"], ":"); {
		case !strings.HasPrefix(r["plain"], "refused") || !slices.Contains([]string{"StatefulSet", "Deployment", "ReplicaSet", "Job"}, kind):
			continue
		case strings.Contains(r["plain"], "--cascade=orphan"):
			want = "replaced"
		default:
			want = r["plain"]
		}
		t.Run(r["name"], func(t *testing.T) {
			w := newChange(t, start(t, fmt.Sprintf("orphaning-%d", i)), r)
			w.options = append(w.options, apply.ReplaceOrphaning)
			pods := w.podsAfter(r, want)
			if want == "replaced" && !slices.Equal(pods[0], pods[1]) {
				t.Errorf("there are the Pods %v, after %v", pods[1], pods[0])
			}
		})
	}
}

// podsAfter runs a change, and returns the Pods before and after it. Those that stay have the new
// object as their owner, where controllers run.
func (w *change) podsAfter(r row, want string) (pods [2][]types.UID) {
	w.t.Helper()
	w.noted = func() { pods[0] = w.uids(&corev1.PodList{}) }
	if got := w.run(r); got != want {
		w.t.Errorf("%s\nand not %s", got, want)
	}
	pods[1] = w.uids(&corev1.PodList{})
	if want == "replaced" && w.patience > 0 && w.before.GetKind() == "StatefulSet" {
		w.awaitAdoption()
	}
	return pods
}

// keepsAll reports whether all that was there is there now.
func keepsAll(was, now []types.UID) bool {
	return !slices.ContainsFunc(was, func(uid types.UID) bool { return !slices.Contains(now, uid) })
}

// awaitAdoption waits until the Pods are controlled by the new object, which a StatefulSet does
// itself.
func (w *change) awaitAdoption() {
	w.t.Helper()
	for deadline := time.Now().Add(w.patience); ; time.Sleep(20 * time.Millisecond) {
		list := &corev1.PodList{}
		if err := w.client.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatalf("listing: %v", err)
		}
		owner := w.live()
		if len(list.Items) > 0 && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, owner) }) {
			return
		}
		if !time.Now().Before(deadline) {
			w.t.Fatalf("the Pods are not adopted: %v", list.Items[0].OwnerReferences)
		}
	}
}

// The command of a remedy, typed as it is printed, leads to what it says.
func testRemedies(t *testing.T, plane *controlplane.ControlPlane, start func(*testing.T, string) *cluster) {
	t.Helper()
	for i, r := range changeRows(t) {
		command := regexp.MustCompile(`run kubectl (delete [^:]*):`).FindStringSubmatch(r["plain"])
		if command == nil || r["others"] != "" {
			continue
		}
		if strings.Contains(command[1], "--cascade=orphan") && !strings.HasPrefix(r["name"], "StatefulSet") {
			continue // a ReplicaSet stands in between, or there are no nodes
		}
		t.Run(r["name"], func(t *testing.T) {
			w := newChange(t, start(t, fmt.Sprintf("remedy-%d", i)), r)
			w.remedy = func(remedy string) {
				line := regexp.MustCompile(`run kubectl (delete [^:]*):`).FindStringSubmatch(remedy)
				kubectl(t, plane, "", strings.Fields(line[1])...)
			}
			pods := w.podsAfter(r, "replaced")
			if strings.Contains(command[1], "--cascade=orphan") && !slices.Equal(pods[0], pods[1]) {
				t.Errorf("there are the Pods %v, after %v", pods[1], pods[0])
			}
		})
	}
}

// What an admission policy refuses is not replaced, in whatever words it says so; nor what a rule of a
// custom kind lets grow only. A rule that says immutable has its field replaced.
func testPolicies(t *testing.T, c *cluster) {
	t.Helper()
	c.create(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "!has(object.data) || !has(object.data.tier) || object.data.tier == oldObject.data.tier", Message: "field is immutable"}},
	}})
	c.create(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "freeze", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}})
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "trial"}, Data: map[string]string{"tier": "gold"}})
	trial := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "trial", Namespace: c.namespace}}
	for deadline := time.Now().Add(c.patience); ; time.Sleep(50 * time.Millisecond) { // until the policy counts
		err := c.client.Patch(c.ctx, trial, client.RawPatch(types.MergePatchType, []byte(`{"data":{"tier":"`+fmt.Sprint(time.Now().UnixNano())+`"}}`)))
		if err != nil {
			break
		}
		if !time.Now().Before(deadline) {
			t.Fatal("the policy does not count")
		}
	}
	w := newChange(t, c, row{"was": `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {tier: gold}}`, "becomes": `{data: {tier: silver}}`})
	w.options = append(w.options, apply.Replace)
	if got := w.run(row{}); !strings.HasPrefix(got, "refused") {
		t.Errorf("a policy refuses the change, and it is %s", got)
	}
}

func runChanges(t *testing.T, start func(*testing.T, int) *cluster) {
	t.Helper()
	n := 0
	for _, r := range changeRows(t) {
		for _, column := range []string{"plain", "replace"} {
			n++
			t.Run(r["name"]+"/"+column, func(t *testing.T) {
				w := newChange(t, start(t, n), r)
				if column == "replace" {
					w.options = append(w.options, apply.Replace)
				}
				if got := w.run(r); got != r[column] {
					t.Errorf("%s\nand not %s", got, r[column])
				}
			})
		}
	}
}

// A change is one object of a set that changes.
type change struct {
	*cluster
	applier *apply.Applier
	options []any
	before  *unstructured.Unstructured
	after   *unstructured.Unstructured

	noted  func()              // it is called before the change
	remedy func(remedy string) // it follows a remedy, nil to leave it
}

func newChange(t *testing.T, c *cluster, r row) *change {
	t.Helper()
	was, err := yaml.YAMLToJSON([]byte(r["was"]))
	must(t, err)
	patch, err := yaml.YAMLToJSON([]byte(r["becomes"]))
	must(t, err)
	becomes, err := jsonpatch.MergePatch(was, patch)
	must(t, err)
	w := &change{cluster: c, applier: &apply.Applier{Client: c.client, FieldOwner: "changes"}, options: []any{apply.NoWait}}
	w.before, w.after = &unstructured.Unstructured{}, &unstructured.Unstructured{}
	must(t, json.Unmarshal(was, w.before))
	must(t, json.Unmarshal(becomes, w.after))
	if w.before.GetKind() == "PersistentVolume" {
		t.Cleanup(func() { c.delete(w.before) })
	}
	return w
}

// apply applies an object once.
func (w *change) apply(obj *unstructured.Unstructured) (lacks string, err error) {
	var set apply.Set
	set.Add(append([]any{obj.DeepCopy()}, w.options...)...)
	status, err := w.applier.Apply(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "set"}, &set)
	if err != nil {
		return "", err
	}
	return status.Lacks, nil
}

// settle applies an object until nothing is lacking, or until that fails.
func (w *change) settle(obj *unstructured.Unstructured) error {
	w.t.Helper()
	for deadline := time.Now().Add(w.patience); ; time.Sleep(20 * time.Millisecond) {
		var lacks string
		var err error
		for range 3 { // the server in memory does at once what controllers do
			if lacks, err = w.apply(obj); err == nil && lacks == "" {
				return nil
			}
		}
		switch class := failure.Classify(err).Class; {
		case class == failure.ClassTerminal || class == failure.ClassInvalid:
			return err
		case !time.Now().Before(deadline):
			w.t.Fatalf("it lacks %q, with error %v", lacks, err)
		}
	}
}

func (w *change) live() *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.before.GroupVersionKind())
	if !w.get(u, w.before.GetName()) {
		w.t.Fatalf("%s %s is gone", u.GetKind(), w.before.GetName())
	}
	return u
}

// run makes the object as it was, and then as it is wanted, and returns what has become of it.
func (w *change) run(r row) string {
	w.t.Helper()
	if err := w.settle(w.before); err != nil {
		w.t.Fatalf("before: %v", err)
	}
	defer w.end()
	before := w.live()
	w.populate(before)
	if r["others"] != "" {
		patch, err := yaml.YAMLToJSON([]byte(r["others"]))
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		w.patch(before.DeepCopy(), string(patch))
	}
	pods, claims := w.uids(&corev1.PodList{}), w.uids(&corev1.PersistentVolumeClaimList{})
	if w.noted != nil {
		w.noted()
	}
	err := w.settle(w.after)
	if err != nil && w.remedy != nil {
		w.remedy(failure.Classify(err).Remedy)
		err = w.settle(w.after)
	}
	after := w.live()
	if now := w.uids(&corev1.PersistentVolumeClaimList{}); w.before.GetKind() != "PersistentVolumeClaim" && !slices.Equal(now, claims) {
		w.t.Errorf("there are the claims %v, after %v", now, claims)
	}
	template := strings.Contains(r["becomes"], "template: {")
	if replaced := after.GetUID() != before.GetUID(); !replaced && !template && !keepsAll(pods, w.uids(&corev1.PodList{})) {
		w.t.Errorf("there are the Pods %v, after %v", w.uids(&corev1.PodList{}), pods)
	} else if replaced && err == nil {
		return "replaced"
	}
	if err != nil {
		return "refused: " + strings.ReplaceAll(failure.Classify(err).Remedy, "-n "+w.namespace, "-n NS")
	}
	if _, err := w.apply(w.after); err != nil || w.live().GetResourceVersion() != after.GetResourceVersion() && w.patience == 0 {
		w.t.Errorf("to apply it again writes, with error %v", err)
	}
	return "changed"
}

// populate waits for the Pods of a workload. In memory, where no controller runs, it creates one.
func (w *change) populate(obj *unstructured.Unstructured) {
	w.t.Helper()
	labels, found, _ := unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "labels")
	if kind := obj.GetKind(); !found || kind == "DaemonSet" || kind == "CronJob" {
		return
	}
	if w.patience == 0 {
		w.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod", Labels: labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		})
		return
	}
	for deadline := time.Now().Add(w.patience); len(w.uids(&corev1.PodList{})) == 0; time.Sleep(20 * time.Millisecond) {
		if !time.Now().Before(deadline) {
			w.t.Fatalf("it gets no Pods")
		}
	}
}

// uids returns which objects are in the namespace.
func (w *change) uids(list client.ObjectList) []types.UID {
	w.t.Helper()
	if err := w.client.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatalf("listing: %v", err)
	}
	var all []types.UID
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			all = append(all, list.Items[i].UID)
		}
	case *corev1.PersistentVolumeClaimList:
		for i := range list.Items {
			all = append(all, list.Items[i].UID)
		}
	}
	slices.Sort(all)
	return all
}

// end deletes what is in no namespace.
func (w *change) end() {
	w.t.Helper()
	if w.live().GetNamespace() == "" {
		w.delete(w.live())
	}
}
