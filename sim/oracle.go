// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

type oracleSet map[oracle.Name]string

// violate notes that an oracle did not hold. Each text of an oracle is noted once.
func (w *World) violate(name oracle.Name, text string, differences ...oracle.Difference) {
	if _, off := w.without[name]; off {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.violations {
		if v.Oracle == name && (v.Text == text || name == oracle.SilentWhenIdle) {
			return
		}
	}
	w.violations = append(w.violations, oracle.Violation{Oracle: name, Text: text, Differences: differences, Entry: w.trace.len()})
	w.trace.add("sim", "oracle", string(name)+": "+firstLine(text))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// ledger is what the oracles remember of a run.
type ledger struct {
	uids          map[types.UID]string // what each UID stands for
	generated     map[string]string    // names that the server has made
	live          map[types.UID]*unstructured.Unstructured
	written       map[string]map[string]any // objects as users created them
	history       map[string][]string       // resource versions of changes, by kind
	created       map[string]int            // by the operator
	deleted       map[string]int
	unsettled     map[types.UID]bool // objects about which others did what a finalizer can't be right with
	forgotten     map[types.UID]bool // objects whose conditions somebody wiped
	secrets       []string
	prerequisites []string        // the objects of the workload
	watchedEver   map[string]bool // kinds that the operator has watched
	proving       string          // what is being done at rest; "" before
	ended         int             // the checkpoint at the end of the script
}

func newLedger() ledger {
	return ledger{
		uids: map[types.UID]string{}, generated: map[string]string{}, live: map[types.UID]*unstructured.Unstructured{},
		written: map[string]map[string]any{}, history: map[string][]string{}, created: map[string]int{}, deleted: map[string]int{},
		watchedEver: map[string]bool{}, unsettled: map[types.UID]bool{}, forgotten: map[types.UID]bool{},
	}
}

func isOperator(actor string) bool { return strings.HasPrefix(actor, "operator") }

// changed looks at each change that the server has committed.
func (w *World) changed(c apiserver.Change) {
	if ignored(c.Resource) {
		return // noteEvent has seen it
	}
	kind := c.Resource.GroupResource().String()
	w.history[kind] = append(w.history[kind], strconv.FormatUint(c.ResourceVersion, 10))
	content := c.New
	if content == nil {
		content = c.Old
	}
	canonical := objectName(c.Resource, c.Namespace, canonicalName(c.Name, content))
	w.uids[c.UID] = canonical
	if name := canonicalName(c.Name, content); name != c.Name {
		w.generated[c.Name] = name
	}
	switch c.Type {
	case "DELETED":
		delete(w.live, c.UID)
		w.recreateNow(objectName(c.Resource, c.Namespace, c.Name))
		w.checkGone(c, canonical)
	default:
		w.live[c.UID] = &unstructured.Unstructured{Object: c.New}
	}
	if c.Type == "ADDED" && c.Actor == "user" {
		w.written[objectName(c.Resource, c.Namespace, c.Name)] = c.New
	}
	if c.Type == "ADDED" && c.Resource.Resource == "secrets" && c.Resource.Group == "" && !isOperator(c.Actor) {
		w.plant(c.New)
	}
	if isOperator(c.Actor) {
		w.changedByOperator(c, canonical)
	}
	if c.Resource.Resource != "secrets" && len(w.secrets) > 0 && c.New != nil {
		status, _ := c.New["status"].(map[string]any)
		w.lookForSecrets("the status of "+canonical, status)
	}
}

func (w *World) changedByOperator(c apiserver.Change, canonical string) {
	switch {
	case c.Type == "ADDED" && w.ownersGone(c.New):
		// Made for an owner that the operator's cache still had: the garbage collector takes it
		// away.
	case c.Type == "ADDED":
		w.created[canonical]++
		w.checkWork("created", canonical, w.created[canonical], func(r *reference) int { return r.created[canonical] })
	case c.Verb == "delete" || c.Verb == "deletecollection":
		w.deleted[canonical]++
		w.checkWork("deleted", canonical, w.deleted[canonical], func(r *reference) int { return r.deleted[canonical] })
	case c.Old != nil && c.New != nil:
		w.checkConditions(c, canonical)
	}
}

// ownersGone reports whether an object has owners and none of them is there.
func (w *World) ownersGone(content map[string]any) bool {
	owners := (&unstructured.Unstructured{Object: content}).GetOwnerReferences()
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return w.live[r.UID] != nil })
}

// checkWork demands that the operator does not do more than without a fault.
func (w *World) checkWork(done, canonical string, times int, wanted func(*reference) int) {
	if w.reference == nil || w.disturbs() {
		return
	}
	if want := wanted(w.reference); times > want {
		w.violate(oracle.SameWork, fmt.Sprintf("%s was %s %s, without the fault %s", canonical, done, timesText(times), timesText(want)))
	}
}

func timesText(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// disturbs reports whether a fault of the plan makes more work legitimate.
func (w *World) disturbs() bool { return w.plan.AddsWork() }

// comesAndGoes says whether a condition is there only while something is out of the ordinary, as
// kstatus has it.
func comesAndGoes(kind string) bool {
	return kind == "Reconciling" || kind == "Stalled" || kind == "Paused"
}

// checkConditions looks at what the operator has made of a status.
func (w *World) checkConditions(c apiserver.Change, canonical string) {
	before, after := statusOf(c.Old), statusOf(c.New)
	if before == nil || after == nil {
		return
	}
	if old, ok := before["observedGeneration"].(int64); ok && !w.forgotten[c.UID] {
		if now, _ := after["observedGeneration"].(int64); now < old {
			w.violate(oracle.ObservedGeneration, fmt.Sprintf("%s: status.observedGeneration fell from %d to %d", canonical, old, now))
		}
	}
	was, is := conditionsOf(before), conditionsOf(after)
	for _, kind := range slices.Sorted(maps.Keys(was)) {
		now, ok := is[kind]
		if !ok && comesAndGoes(kind) {
			continue
		}
		if !ok {
			w.violate(oracle.ConditionsStay, fmt.Sprintf("%s: condition %s has vanished", canonical, kind))
			continue
		}
		old := was[kind]
		sameStatus, sameTime := old["status"] == now["status"], old["lastTransitionTime"] == now["lastTransitionTime"]
		if sameStatus && !sameTime {
			w.violate(oracle.TransitionTime, fmt.Sprintf("%s: lastTransitionTime of condition %s moved, its status stayed %v", canonical, kind, now["status"]))
		}
		w.checkGenerationOf(canonical, kind, old, now)
	}
}

func (w *World) checkGenerationOf(canonical, kind string, old, now map[string]any) {
	before, ok := old["observedGeneration"].(int64)
	if !ok {
		return
	}
	if after, _ := now["observedGeneration"].(int64); after < before {
		w.violate(oracle.ObservedGeneration, fmt.Sprintf("%s: observedGeneration of condition %s fell from %d to %d", canonical, kind, before, after))
	}
}

func statusOf(content map[string]any) map[string]any {
	status, _ := content["status"].(map[string]any)
	return status
}

func conditionsOf(status map[string]any) map[string]map[string]any {
	conditions := map[string]map[string]any{}
	list, _ := status["conditions"].([]any)
	for _, element := range list {
		if m, ok := element.(map[string]any); ok {
			if kind, ok := m["type"].(string); ok {
				conditions[kind] = m
			}
		}
	}
	return conditions
}

func (w *World) forgetConditions(uid types.UID) { w.forgotten[uid] = true }

// disturbed notes that what a finalizer promises can't hold for an object.
func (w *World) disturbed(uid types.UID) { w.unsettled[uid] = true }

// checkWrite looks at a write of the operator before it is done.
func (w *World) checkWrite(r *apiserver.Request) {
	if w.proving != "" {
		w.violate(oracle.SilentWhenIdle, fmt.Sprintf("%s at rest caused: %s", w.proving, describe(r)))
	}
}

// isForeign reports whether a request is about an object that somebody else has created. It touches
// the object unless the API server refuses it: an operator may rely on that, with a resource
// version.
func (w *World) isForeign(r *apiserver.Request) bool {
	if r.Verb == "create" {
		return false
	}
	for _, o := range w.live {
		if o.GetName() == r.Name && o.GetNamespace() == r.Namespace && o.GetAnnotations()[foreign] != "" && w.sameKind(o, r) {
			return true
		}
	}
	return false
}

func (w *World) sameKind(o *unstructured.Unstructured, r *apiserver.Request) bool {
	resource, _, err := w.server.ResourceFor(o.GroupVersionKind())
	return err == nil && resource.GroupResource() == r.Resource.GroupResource()
}

// checkBeforeCall looks at a call of the operator that has an effect, before it.
func (w *World) checkBeforeCall(p *parked) {
	if w.proving != "" {
		w.violate(oracle.SilentWhenIdle, fmt.Sprintf("%s at rest caused: %s", w.proving, p.call))
	}
	owner := p.call.Owner
	if owner == "" || p.call.Verb == "delete" || w.unsettled[owner] {
		return
	}
	obj, ok := w.live[owner]
	switch {
	case !ok && w.uids[owner] != "":
		w.violate(oracle.FinalizerFirst, fmt.Sprintf("%s: %s is gone already", p.call, w.uids[owner]))
	case ok && len(obj.GetFinalizers()) == 0:
		w.violate(oracle.FinalizerFirst, fmt.Sprintf("%s: %s has no finalizer, so nobody would clean up", p.call, w.uids[owner]))
	}
}

// checkAfterCall looks at what a call has made.
func (w *World) checkAfterCall(p *parked) {
	s, ok := w.externals[p.call.System]
	owner := p.call.Owner
	if !ok || owner == "" || w.reference == nil || w.disturbs() {
		return
	}
	want := max(1, w.reference.externals[p.call.System+" "+w.uids[owner]])
	if got := s.created[owner]; got > want {
		w.violate(oracle.OneExternal, fmt.Sprintf("%d resources of %s were created for %s, without the fault %d", got, p.call.System, w.uids[owner], want))
	}
}

// checkGone looks for what an object has left behind.
func (w *World) checkGone(c apiserver.Change, canonical string) {
	if w.unsettled[c.UID] && w.plan.Has(fault.Vanish) {
		return // the clean-up can only come afterwards: the end state shows whether it does
	}
	for _, name := range slices.Sorted(maps.Keys(w.externals)) {
		for _, e := range w.externals[name].sorted() {
			if e.owner == c.UID {
				w.violate(oracle.NoLeak, fmt.Sprintf("%s is gone, its external resource %s of %s is not", canonical, e.ID, name))
			}
		}
	}
}

// checkSaysWhy demands of objects that can't go on that they say so.
func (w *World) checkSaysWhy(cause string) {
	for _, uid := range slices.Sorted(maps.Keys(w.live)) {
		obj := w.live[uid]
		if obj.GetDeletionTimestamp() == nil || w.reference == nil || !w.reference.conditions[w.uids[uid]] {
			continue
		}
		if !saysWhy(obj) {
			w.violate(oracle.SaysWhy, fmt.Sprintf("%s, %s can't be deleted, and no condition of it says so", cause, w.uids[uid]))
		}
	}
	for i := range w.outages {
		o := &w.outages[i]
		if o.over {
			continue
		}
		for _, uid := range o.blocked {
			if obj, ok := w.live[uid]; ok && w.reference != nil && w.reference.conditions[w.uids[uid]] && !saysWhy(obj) {
				w.violate(oracle.SaysWhy, fmt.Sprintf("%s does not answer, %s can't go on, and no condition of it says so", o.system, w.uids[uid]))
			}
		}
	}
}

// saysWhy reports whether a condition says that something is not as it should be, with a reason.
func saysWhy(obj *unstructured.Unstructured) bool {
	for kind, c := range conditionsOf(statusOf(obj.Object)) {
		bad := c["status"] != "True"
		switch kind {
		case "Stalled", "Reconciling", "Degraded", "Progressing", "Terminating", "Deleting":
			bad = c["status"] == "True" || bad && kind == "Progressing"
		}
		reason, _ := c["reason"].(string)
		if bad && reason != "" {
			return true
		}
	}
	return false
}

// The number of requests that a run may need.
const (
	requestFactor = 20
	requestFloor  = 5000
	requestLimit  = 2000 // without a faultless run to compare with
)

func (w *World) tooManyRequests() bool {
	limit := requestLimit
	if w.reference != nil {
		limit = requestFactor*w.reference.requests + requestFloor
	}
	w.mu.Lock()
	made := w.requests + w.eventWrites
	w.mu.Unlock()
	if made <= limit {
		return false
	}
	if !w.aborted {
		w.violate(oracle.BoundedRequests, fmt.Sprintf("more than %d requests: the operator does not stop to work", limit))
		w.abort()
		for _, p := range w.alive() {
			w.crash(p)
		}
	}
	return true
}

// shortestSecret is how long a value of a Secret must be to be looked for.
const shortestSecret = 6

// plant notes the values of a Secret of the workload, which must not appear elsewhere.
func (w *World) plant(secret map[string]any) {
	data, _ := secret["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		value, err := base64.StdEncoding.DecodeString(text)
		if err == nil && len(value) >= shortestSecret && !slices.Contains(w.secrets, string(value)) {
			w.mu.Lock()
			w.secrets = append(w.secrets, string(value))
			w.mu.Unlock()
		}
	}
}

func (w *World) lookForSecrets(where string, content map[string]any) {
	if len(w.secrets) == 0 || content == nil {
		return
	}
	data, err := json.Marshal(content)
	if err != nil {
		return
	}
	w.lookForSecretsIn(where, string(data))
}

func (w *World) lookForSecretsIn(where, text string) {
	w.mu.Lock()
	secrets := w.secrets
	w.mu.Unlock()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			w.violate(oracle.NoSecret, "a value of a Secret appears in "+where)
		}
	}
}

// noteEvent looks at an Event that the operator is about to write. Events are answered at once, not
// by the driver: client-go holds a lock while it writes them.
func (w *World) noteEvent(r *apiserver.Request) {
	w.lookForSecretsIn("an Event", string(r.Body))
	w.mu.Lock()
	w.eventWrites++
	proving := w.proving
	w.mu.Unlock()
	if proving != "" && !strings.Contains(string(r.Body), "LeaderElection") {
		w.violate(oracle.SilentWhenIdle, fmt.Sprintf("%s at rest caused an Event: %s", proving, describe(r)))
	}
}

// prove notes what is done at rest, which must not cause anything.
func (w *World) prove(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proving = what
}

// proveRest resyncs and restarts the operator at rest, which must not cause anything.
func (w *World) proveRest() {
	defer w.prove("")
	w.must("resync", func() error {
		w.prove("a resync")
		w.active()
		w.trace.add("sim", "rest", "resync: all watches expire")
		for _, o := range w.watches {
			w.expire(o.resource.GroupResource().String())
		}
		return nil
	})
	w.settleOnly()
	w.must("restart", func() error {
		w.prove("a restart")
		w.active()
		for _, p := range w.alive() {
			w.stop(p)
		}
		w.after(restartTime, func() { w.start(0) })
		return nil
	})
	w.settleOnly()
}

// checkEnd compares the world with the one without faults, and looks for secrets in the logs.
func (w *World) checkEnd() {
	for _, line := range w.trace.Logs() {
		w.lookForSecretsIn("the log", line)
		if strings.Contains(line, "[recovered]") && !strings.Contains(line, injectedPanic) {
			w.violate(oracle.NoPanic, "the operator panicked, and controller-runtime recovered it: "+line)
		}
	}
	if w.reference == nil || w.aborted {
		return
	}
	for i, want := range w.reference.checkpoints {
		if i >= len(w.checkpoints) {
			return
		}
		differences := want.diff(w.checkpoints[i], w.reference.mask)
		if len(differences) == 0 {
			continue
		}
		lines := make([]string, len(differences))
		for j, d := range differences {
			lines[j] = d.String()
		}
		w.violate(oracle.SameEnd, fmt.Sprintf("at rest %d of %d, the world is not what it is without the fault:\n  %s",
			i+1, len(w.reference.checkpoints), strings.Join(lines, "\n  ")), differences...)
		return
	}
}
