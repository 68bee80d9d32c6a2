// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Health is how an object is, by its own status.
type Health struct {
	State State `json:"state"`
	// Reason is a word in CamelCase: the reason of the condition that decided, or one of this
	// package. It is empty for an object that is ready by its status.
	Reason string `json:"reason,omitempty"`
	// Message says why an object is not ready, as a part of a sentence: "1 of 2 replicas updated".
	// What an object's controller wrote is passed on as it stands.
	Message string `json:"message,omitempty"`
}

// String returns the health as a line: "Progressing: 1 of 2 replicas updated".
func (h Health) String() string {
	text := h.Message
	if text == "" {
		text = h.Reason
	}
	return strings.TrimSuffix(string(h.State)+": "+text, ": ")
}

// IsReady reports whether the object is ready.
func (h Health) IsReady() bool { return h.State == StateReady }

// A State is how an object is, in a word. The empty one is no state.
type State string

// The states.
const (
	StateReady       State = "Ready"
	StateProgressing State = "Progressing" // its controller is expected to make it ready
	StateFailed      State = "Failed"      // by its status, it does not become ready without a change
	StateTerminating State = "Terminating" // it is being deleted
	StateUnknown     State = "Unknown"     // what is known of it does not say; see the reason
)

// Reasons of this package. Others are those of conditions, of kstatus, and of built-in kinds.
const (
	ReasonNoStatus         = "NoStatus"         // ready: it exists, and has no status
	ReasonNotObserved      = "NotObserved"      // progressing: the status is older than the spec
	ReasonDeleted          = "Deleted"          // terminating
	ReasonReplicas         = "Replicas"         // progressing: counters of replicas differ
	ReasonPhase            = "Phase"            // its phase says so
	ReasonUnknownPhase     = "UnknownPhase"     // unknown: its phase is a word with no agreed meaning
	ReasonMetadataOnly     = "MetadataOnly"     // unknown: only the metadata of the object is at hand
	ReasonUnreadableStatus = "UnreadableStatus" // unknown: the status has not the form of its kind
)

// Of returns the health of an object: typed, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata. A nil object is unknown.
//
// A typed object of a cache does not name its kind. Its Go type says it, if it is one of client-go;
// for other types with rules of their own, use [OfKind].
func Of(obj client.Object) Health {
	if isNil(obj) {
		return unknown(ReasonUnreadableStatus, "there is no object")
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if _, untyped := obj.(runtime.Unstructured); gvk.Kind == "" && !untyped {
		if kinds, _, err := clientgoscheme.Scheme.ObjectKinds(obj); err == nil {
			gvk = kinds[0]
		}
	}
	return OfKind(obj, gvk)
}

// OfKind is [Of] for an object whose kind the caller knows.
func OfKind(obj client.Object, gvk schema.GroupVersionKind) Health {
	if isNil(obj) {
		return unknown(ReasonUnreadableStatus, "there is no object")
	}
	deleted := !obj.GetDeletionTimestamp().IsZero()
	if !deleted && withoutStatus[gvk.GroupKind()] {
		return Health{State: StateReady, Reason: ReasonNoStatus}
	}
	if _, partial := obj.(*metav1.PartialObjectMetadata); partial {
		if deleted {
			return terminating(obj, nil)
		}
		return unknown(ReasonMetadataOnly, "only its metadata is at hand, not its status")
	}
	if s, ok := obj.(*corev1.Service); ok && !deleted && s.Spec.Type != corev1.ServiceTypeLoadBalancer && len(s.Status.Conditions) == 0 {
		return Health{State: StateReady} // as ofService, without encoding it
	}
	d, err := newDocument(obj, gvk)
	switch {
	case deleted:
		return terminating(obj, d)
	case err != nil:
		return unknown(ReasonUnreadableStatus, err.Error())
	}
	return d.summarize()
}

// withoutStatus are kinds that are ready when they exist, and that operators have many of.
var withoutStatus = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}: true, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
}

func isNil(obj client.Object) bool {
	if obj == nil {
		return true
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u == nil || u.Object == nil
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func unknown(reason, message string) Health { return Health{StateUnknown, reason, message} }

// terminating says what the deletion of an object waits for. D is nil if only the metadata is
// known.
func terminating(obj client.Object, d *document) Health {
	s := Health{State: StateTerminating, Reason: ReasonDeleted}
	if d != nil {
		if c, ok := d.first(deletionProblems, "True"); ok {
			return Health{StateTerminating, c.reasonOr(ReasonDeleted), c.text()}
		}
	}
	finalizers := slices.Sorted(slices.Values(obj.GetFinalizers()))
	switch len(finalizers) {
	case 0:
	case 1:
		s.Message = "waits for the finalizer " + finalizers[0]
	default:
		s.Message = "waits for the finalizers " + strings.Join(finalizers, ", ")
	}
	return s
}

// deletionProblems are conditions of Namespaces that say why one is not gone, the gravest first.
var deletionProblems = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
}

// summarize returns the health of an object that is not being deleted.
func (d *document) summarize() Health {
	if d.behind() {
		return Health{StateProgressing, ReasonNotObserved, "its controller has not seen the last change"}
	}
	if rule := kinds[d.gk]; rule != nil {
		return rule(d)
	}
	if d.status == nil {
		return Health{State: StateReady, Reason: ReasonNoStatus}
	}
	for _, judge := range []judge{byFailure, byTrouble} {
		if s, ok := judge(d); ok {
			return s
		}
	}
	s, decided := Health{State: StateReady}, false
	for _, judge := range []judge{byGoals, byParents, byReplicas, byFlags} {
		if s, decided = judge(d); decided {
			break
		}
	}
	if !decided || s.State == StateReady {
		for _, judge := range []judge{byParents, byReports, byReplicasUnlessReady} {
			if of, ok := judge(d); ok && of.State != StateReady {
				s, decided = of, true
				break
			}
		}
	}
	// That an object is complete does not say how it has ended, and that it is available not whether
	// its controller is at work.
	phase, ok := byPhase(d)
	if ok && (!decided || phase.State == StateFailed && s.Reason != ReasonNotObserved || phase.State == StateProgressing && s.State == StateReady && !d.saysReady()) {
		return phase
	}
	if decided {
		return s
	}
	for _, judge := range []judge{byTypes, byError} {
		if s, ok := judge(d); ok {
			return s
		}
	}
	switch {
	case d.status["conditions"] != nil && len(d.conditions) == 0:
		return Health{StateProgressing, ReasonNoStatus, "it has no condition yet"}
	case len(d.conditions) > 0 && d.ends():
		return Health{StateProgressing, "Running", "none of its conditions says that it has ended"}
	}
	return Health{State: StateReady}
}

// A judge looks at one part of an object. It reports whether that part decides.
type judge = func(*document) (Health, bool)

// byParents judges by the conditions that each of several controllers has written: those of the
// Gateway API, for routes and policies, and those of OpenShift's routers.
func byParents(d *document) (Health, bool) {
	found := false
	for _, list := range []string{"parents", "ancestors", "ingress", "tags", "listeners"} {
		entries, ok := d.status[list].([]any)
		if !ok {
			continue
		}
		optional := list != "parents" && list != "ancestors" // other kinds have lists of these names
		for _, entry := range entries {
			parent := &document{gk: d.gk, generation: d.generation, status: asMap(entry)}
			if err := parent.readConditions(); err != nil {
				return unknown(ReasonUnreadableStatus, "its "+list+": "+err.Error()), true
			}
			s, ok := byConditions(parent)
			switch {
			case ok && s.State != StateReady:
				return s, true
			case !ok && !optional:
				return Health{StateProgressing, ReasonNoStatus, "one of its " + list + " has not reported"}, true
			}
			found = found || ok
		}
		if refs, _ := d.field("spec", "parentRefs").([]any); !optional && len(entries) < max(1, len(refs)) {
			return Health{StateProgressing, ReasonNoStatus, "no controller has reported on one of its " + list}, true
		}
	}
	return Health{State: StateReady}, found
}

// saysReady reports whether a condition Ready is true, which sums the others up.
func (d *document) saysReady() bool {
	c, ok := d.condition("Ready")
	return ok && c.status == "True"
}

// byReports judges by what each of several controllers has written under its name, if it is bad, as
// those of Gloo do.
func byReports(d *document) (Health, bool) {
	reports := asMap(d.status["statuses"])
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		report := &document{gk: d.gk, status: asMap(reports[name]), content: map[string]any{"status": reports[name]}}
		if s, ok := byPhase(report); ok && s.State == StateFailed { // a word such as Accepted is the best one
			return s, true
		}
	}
	return Health{}, false
}

func byReplicasUnlessReady(d *document) (Health, bool) {
	if _, ok := d.condition("Ready"); ok {
		return Health{}, false
	}
	return byReplicas(d)
}

// byFailure reads the fields in which Cluster API v1beta1 keeps a failure that is final.
func byFailure(d *document) (Health, bool) {
	reason, message := d.text("status", "failureReason"), d.text("status", "failureMessage")
	if reason == "" && message == "" {
		return Health{}, false
	}
	if message == "" {
		message = "it has failed"
	}
	return Health{StateFailed, reason, message}, true
}

// byReplicas compares the counters of objects that scale. It is for objects whose conditions do not
// say whether they are ready.
func byReplicas(d *document) (Health, bool) {
	wanted, ok := d.number("spec", "replicas")
	if !ok {
		return Health{}, false
	}
	counted := false
	for _, c := range []struct{ field, done string }{
		{"replicas", "created"}, {"updatedReplicas", "updated"}, {"readyReplicas", "ready"}, {"availableReplicas", "available"},
	} {
		n, ok := d.number("status", c.field)
		counted = counted || ok
		switch {
		case !ok: // zero is often left out, but so is what a kind does not count
		case n < wanted:
			return Health{StateProgressing, ReasonReplicas, fmt.Sprintf("%d of %d replicas %s", n, wanted, c.done)}, true
		case c.field == "replicas" && n > wanted:
			return Health{StateProgressing, ReasonReplicas, surplusText(n - wanted)}, true
		}
	}
	return Health{State: StateReady}, counted
}

func surplusText(n int64) string {
	if n == 1 {
		return "1 surplus replica to be removed"
	}
	return fmt.Sprintf("%d surplus replicas to be removed", n)
}
