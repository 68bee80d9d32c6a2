// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import "github.com/ctrlkit/ctrlkit/internal/sim/oracle"

// The mistakes of an operator that keeps a ConfigMap and a Deployment for each Widget.
const (
	adoptsForeign        Bug = "adopts-foreign"
	noOwner              Bug = "no-owner-reference"
	readyTooEarly        Bug = "ready-too-early"
	conditionsFromZero   Bug = "conditions-from-zero"
	transitionEachTime   Bug = "transition-each-time"
	counterInMessage     Bug = "counter-in-message"
	swallowsConflict     Bug = "swallows-conflict"
	swallowsErrors       Bug = "swallows-errors"
	existsIsDone         Bug = "already-exists-is-done"
	comparesDefaults     Bug = "compares-with-defaults"
	wipesAnnotations     Bug = "wipes-annotations"
	hidesChildUpdates    Bug = "generation-predicate-on-child"
	keepsOldChild        Bug = "keeps-old-child"
	keepsOldField        Bug = "keeps-old-field"
	remembersInMemory    Bug = "remembers-in-memory"
	noRequeue            Bug = "waits-for-nothing"
	forbiddenIsTerminal  Bug = "forbidden-is-terminal"
	noBackoff            Bug = "no-backoff"
	secretInCondition    Bug = "secret-in-condition"
	leaksGoroutines      Bug = "leaks-goroutines"
	panicsOnEmptyStatus  Bug = "panics-on-empty-status"
	observedFromMemory   Bug = "observed-generation-from-memory"
	observedWithChanges  Bug = "observed-generation-with-changes"
	edgeTriggered        Bug = "edge-triggered"
	writesStatusAlways   Bug = "writes-status-always"
	eventEachTime        Bug = "event-each-time"
	identityIsName       Bug = "identity-is-name"
	blindStatusOverwrite Bug = "blind-status-overwrite"
	anyControllerIsOurs  Bug = "any-controller-is-ours"
	usesOrphans          Bug = "uses-orphans"
)

func childMutants() []Mutant {
	m := mutantsOf(childWorkload)
	return []Mutant{
		m(adoptsForeign, "an object of the wanted name is taken over, whatever its owner", "wrangler apply's silent change of owners", oracle.ForeignUntouched, oracle.SameEnd),
		m(noOwner, "children have no owner reference, and are deleted by a cleanup that a crash or a missed event prevents", "rabbitmq cluster-operator and others in Sieve (OSDI 2022)", oracle.SameEnd),
		m(readyTooEarly, "Ready is set before the child is there, and not evaluated again", "a condition satisfied by a half-done step: cass-operator in Anvil (OSDI 2024)", oracle.ReadyWhenDone, oracle.SameEnd, oracle.SaysWhy),
		m(conditionsFromZero, "the list of conditions is made anew in each reconcile", "conditions that vanish on errors: Flux's linter exists for it", oracle.ConditionsStay, oracle.TransitionTime),
		m(transitionEachTime, "lastTransitionTime is set in each reconcile", "two operators that woke each other for ever", oracle.SilentWhenIdle, oracle.TransitionTime, oracle.BoundedRequests),
		m(counterInMessage, "the text of an error changes at every try, and is written into the status", "status storms by request ids of cloud providers", oracle.BoundedRequests, oracle.BecomesIdle, oracle.SilentWhenIdle),
		m(swallowsConflict, "a conflict is taken for the success of another writer", "a status handler that sets its condition True on a conflict", oracle.SameEnd),
		m(swallowsErrors, "errors of the API server are logged and forgotten", "Acto (SOSP 2023): errors ignored in eleven operators", oracle.SameEnd),
		m(existsIsDone, "AlreadyExists is taken for done, whatever the owner of the object", "silent takeover of objects of other owners", oracle.SameEnd),
		m(comparesDefaults, "what is wanted is compared with what the server has made of it", "hot loops by server defaults, reported for most operators", oracle.NoNoopWrites, oracle.BoundedRequests),
		m(wipesAnnotations, "annotations and labels of others are removed from the child", "a fight with webhooks that inject", oracle.BoundedRequests, oracle.BecomesIdle, oracle.SilentWhenIdle),
		m(hidesChildUpdates, "a generation predicate hides changes of a kind without generations", "predicates on ConfigMaps: kubebuilder's documentation warns", oracle.SameEnd),
		m(keepsOldChild, "a child stays when another name is wanted", "Acto: orphans after a change of the spec", oracle.SameEnd),
		m(keepsOldField, "what is taken out of the spec is not taken out of the child", "Acto: declarations that can't be taken back", oracle.SameEnd),
		m(remembersInMemory, "what was done is kept in a map by name", "state lost at restarts and kept over re-creation", oracle.SameEnd),
		m(noRequeue, "waiting for something that is neither watched nor polled", "operators that have to be restarted after the Secret was created", oracle.SameEnd),
		m(forbiddenIsTerminal, "403 ends the work for ever", "errors classified as fatal although RBAC was applied a second later", oracle.SameEnd),
		m(noBackoff, "a failure is tried again at once, for ever", "request storms while a Secret is missing", oracle.BoundedRequests),
		m(secretInCondition, "the condition of a failure quotes what was to be written", "credentials in status messages", oracle.NoSecret),
		m(leaksGoroutines, "each reconcile starts a goroutine that does not end", "watches per object that are never stopped", oracle.NoGoroutineLeft),
		m(panicsOnEmptyStatus, "a status that another client has removed is not expected", "Acto: panics on states that the operator itself never makes", oracle.SameEnd, oracle.BecomesIdle, oracle.SilentWhenIdle, oracle.NoPanic),
		m(observedFromMemory, "observedGeneration is taken from a counter of the process", "status.observedGeneration that falls after a restart", oracle.ObservedGeneration, oracle.SilentWhenIdle, oracle.SameEnd, oracle.BoundedRequests),
		m(observedWithChanges, "observedGeneration is written only with a change of the children", "a status that a crash between two writes leaves behind for ever", oracle.SameEnd),
		m(edgeTriggered, "cleanup happens when the deletion is seen, and only then", "Sieve: deletions missed over a restart", oracle.SameEnd),
		m(writesStatusAlways, "the status is written in each reconcile", "apply-every-time frameworks", oracle.NoNoopWrites, oracle.BoundedRequests),
		m(eventEachTime, "an Event is written in each reconcile", "event storms", oracle.SilentWhenIdle, oracle.BoundedRequests),
		m(identityIsName, "a child is ours when it has our name in a label, whose ever UID it belongs to", "an object deleted and created again under the same name", oracle.SameEnd, oracle.SameWork),
		m(blindStatusOverwrite, "the status is patched without the version that was read, from a stale copy", "status lost or retried blindly on conflicts", oracle.ObservedGeneration, oracle.SameEnd),
		m(anyControllerIsOurs, "a child with a controller is ours, whichever that is", "controllers of two kinds that write the same ConfigMap", oracle.ForeignUntouched),
		m(usesOrphans, "a child with our label and without an owner is used, and never gets an owner", "orphans of kubectl delete --cascade=orphan that stay for ever", oracle.SameEnd),
	}
}
