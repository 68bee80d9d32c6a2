// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// ledger is what the oracles know of a run. They only read it.
type ledger struct {
	now       func() time.Time
	reference *Reference // nil in the run that becomes it
	addsWork  bool       // a fault of the plan makes more work right
	vanishes  bool       // a fault of the plan takes an object away in spite of its finalizer
	replaces  bool       // a fault of the plan replaces an object of users with a new one
	occupies  bool       // a fault of the plan takes a name that the operator is about to use
	systems   map[string]external.System
	rules     Rules
	pace      Pace
	declare   string
	faultless bool // the plan has no fault
	honest    bool // the operator sees everything as it is, and at once
	prepared  bool // the objects are there that the workload needs from the beginning
	stage     int  // how often the operator was idle so far
	began     time.Time
	times     []time.Duration // of the checkpoints, since the run began
	aborted   bool
	endless   bool // the operator was seen to do the same again and again

	uids       map[types.UID]string // what each UID stands for, "configmaps default/x"
	generated  map[string]string    // names that the server has generated
	live       map[types.UID]liveObject
	created    map[string]int // by the operator
	deleted    map[string]int
	disturbed  map[types.UID]bool            // others did what a finalizer can't be right with
	wiped      map[types.UID]bool            // others removed the status
	owners     map[types.UID][]types.UID     // of each object, also of those that are gone
	held       map[types.UID]map[string]bool // finalizers that the operator has added
	made       map[types.UID]bool            // objects that the operator has created
	reconciled reconciled
	retries    *retries
	users      int             // objects that users have created since the operator started
	caused     time.Time       // when others have changed something, as the last
	periodic   map[string]bool // what the operator does without a cause but time
	beats      map[types.UID]beats
	slots      map[string]*slots // what the operator creates and deletes, by name
	said       map[string]bool   // each condition that was set, with the status that it had

	mu      sync.Mutex     // guards what follows: Events are judged beside the driver
	secrets secrets.Values // of users, without what they have written elsewhere
	proving string         // what is being done to the idle operator; "" before and after
	proof   time.Time      // when that was done
}

// liveObject is one that is in the cluster.
type liveObject struct {
	resource schema.GroupVersionResource
	*unstructured.Unstructured
}

// change is one of the cluster, as oracles see it.
type change struct {
	apiserver.Change
	canonical  string // the object: "configmaps default/x"
	byOperator bool
	orphan     bool // an object was created whose owners are all gone
	beat       bool // it renews times of a status by the clock: see beats
}

func newLedger(o Options) *ledger {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &ledger{
		now:       o.Now,
		reference: o.Reference, addsWork: o.Plan.AddsWork(), vanishes: o.Plan.Has(fault.Vanish), systems: o.Systems,
		replaces: replaces(o.Plan), occupies: occupies(o.Plan),
		uids: map[types.UID]string{}, generated: map[string]string{}, live: map[types.UID]liveObject{},
		created: map[string]int{}, deleted: map[string]int{}, disturbed: map[types.UID]bool{}, wiped: map[types.UID]bool{}, owners: map[types.UID][]types.UID{},
		rules: o.Rules, pace: cmp.Or(o.Pace, virtual), declare: o.Declare, faultless: len(o.Plan.Faults) == 0, honest: o.Plan.Honest(),
		held: map[types.UID]map[string]bool{}, caused: o.Now(), began: time.Now(), periodic: map[string]bool{}, beats: map[types.UID]beats{}, slots: map[string]*slots{},
		said: map[string]bool{}, made: map[types.UID]bool{}, reconciled: reconciled{map[types.UID]bool{}, map[string]bool{}}, retries: &retries{refused: map[string]refusedWrite{}},
	}
}

func replaces(p fault.Plan) bool {
	return p.Has(fault.Recreate) || p.Has(fault.DeleteAndCreate) || p.Has(fault.Vanish)
}

func occupies(p fault.Plan) bool {
	return p.Has(fault.OccupyName) || p.Has(fault.OccupyNameByController) || p.Has(fault.LeaveOrphan)
}

// record takes a change into the ledger.
func (l *ledger) record(committed apiserver.Change) *change {
	content := committed.New
	if content == nil {
		content = committed.Old
	}
	if part, ok := l.reference.mintedPart(committed); ok {
		l.generated[part] = "*"
	}
	name := l.canonicalName(committed.Name, content)
	c := &change{
		Change: committed, canonical: cluster.ObjectName(committed.Resource, committed.Namespace, name), byOperator: cluster.IsOperator(committed.Actor),
	}
	l.uids[c.UID] = c.canonical
	c.beat = noteBeat(l, c)
	l.noteOwners(c.UID, content)
	l.notePeriodic(c)
	l.noteFinalizers(c)
	l.reconciled.note(c, len(l.held[c.UID]) > 0)
	l.noteConditions(c)
	if c.byOperator && !c.beat {
		l.retries.changed()
	}
	if c.byOperator {
		if c.Type == "ADDED" {
			l.made[c.UID] = true
		}
	}
	if name != c.Name {
		l.generated[c.Name] = name
	}
	l.recordMinted(c)
	if c.Type == "DELETED" {
		delete(l.live, c.UID)
	} else {
		l.live[c.UID] = liveObject{c.Resource, &unstructured.Unstructured{Object: c.New}}
	}
	if c.Type == "ADDED" && c.isUsers() {
		if l.prepared {
			l.users++
		}
		l.noteUsersWords(c)
	}
	if c.Type == "ADDED" && cluster.IsSecret(c.Resource) && !c.byOperator {
		l.addSecrets(c.New)
	}
	// An object for an owner that only the operator's cache still has is taken away by the garbage
	// collector: it is not counted as created.
	c.orphan = c.Type == "ADDED" && l.ownersGone(c.New)
	switch {
	case !c.byOperator || c.orphan:
	case c.Type == "ADDED":
		l.created[c.canonical]++
		noteSlot(l, "created "+c.canonical, c)
	case c.isDeletion() && !isMarked(c.Old): // a Pod is marked, and then removed
		l.deleted[c.canonical]++
		noteSlot(l, "deleted "+c.canonical, c)
	}
	return c
}

// canonicalName returns the name of an object with "*" for what the server has generated of it, or of
// the object that it is named after, and without the UID of that one.
func (l *ledger) canonicalName(name string, content map[string]any) string {
	if canonical := cluster.CanonicalName(name, content); canonical != name {
		return withoutMinted(canonical, l.generated)
	}
	for _, generated := range slices.Backward(slices.Sorted(maps.Keys(l.generated))) {
		if canonical := l.generated[generated]; strings.HasSuffix(canonical, "*") && strings.Contains(name, generated) {
			return strings.ReplaceAll(name, generated, canonical)
		}
	}
	if found := cluster.UID.FindString(name); l.uids[types.UID(found)] != "" {
		return strings.ReplaceAll(name, found, "uid("+l.uids[types.UID(found)]+")")
	}
	return name
}

// hashText stands for the hash of a template.
const hashText = "<hash>"

// recordMinted records what controllers mint for an object: the address of a Pod, and the hash of a
// template, which differs when the template has something that was minted.
func (l *ledger) recordMinted(c *change) {
	switch c.Resource.GroupResource().String() {
	case "pods":
		if ip, ok := statusOf(c.New)["podIP"].(string); ok && ip != "" {
			l.generated[ip] = "ip(" + c.canonical + ")"
		}
	case "replicasets.apps", "controllerrevisions.apps":
		if base := strings.TrimSuffix(cluster.CanonicalName(c.Name, c.New), "*"); base != c.Name && strings.HasPrefix(c.Name, base) {
			l.generated[c.Name[len(base):]] = hashText
		}
	}
}

func (c *change) isDeletion() bool { return c.Verb == "delete" || c.Verb == "deletecollection" }

// isMarked reports whether an object is being deleted.
func isMarked(content map[string]any) bool {
	return content != nil && (&unstructured.Unstructured{Object: content}).GetDeletionTimestamp() != nil
}

// isUsers reports whether a user has made the change.
func (c *change) isUsers() bool { return strings.HasPrefix(c.Actor, "user") }

// isUpdate reports whether the operator has changed an object that was there before.
func (c *change) isUpdate() bool {
	return c.byOperator && c.Type != "ADDED" && !c.isDeletion() && c.Old != nil && c.New != nil
}

// noteOwners records the owners of an object.
func (l *ledger) noteOwners(uid types.UID, content map[string]any) {
	for _, r := range (&unstructured.Unstructured{Object: content}).GetOwnerReferences() {
		if !slices.Contains(l.owners[uid], r.UID) && r.UID != uid {
			l.owners[uid] = append(l.owners[uid], r.UID)
		}
	}
}

// ownersGone reports whether an object has owners and none of them is there.
func (l *ledger) ownersGone(content map[string]any) bool {
	owners := (&unstructured.Unstructured{Object: content}).GetOwnerReferences()
	return len(owners) > 0 && !slices.ContainsFunc(owners, isLive(l))
}

// isLive returns what reports whether an owner is there.
func isLive(l *ledger) func(metav1.OwnerReference) bool {
	return func(owner metav1.OwnerReference) bool {
		_, live := l.live[owner.UID]
		return live
	}
}

// names replaces what the world has minted by what it was minted for.
func (l *ledger) names() *strings.Replacer {
	var pairs []string
	for _, uid := range slices.Sorted(maps.Keys(l.uids)) {
		text := "uid(" + l.uids[uid] + ")"
		if _, live := l.live[uid]; !live {
			text = "former " + text
		}
		pairs = append(pairs, string(uid), text)
		if bare := strings.ReplaceAll(string(uid), "-", ""); bare != string(uid) { // in names of external systems
			pairs = append(pairs, bare, text)
		}
	}
	// A name can be the beginning of others, which come first then: a ReplicaSet's of its Pods'.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(l.generated))) {
		pairs = append(pairs, name, l.generated[name])
	}
	for _, name := range slices.Sorted(maps.Keys(l.systems)) {
		if !l.systems[name].MintsIDs() {
			continue
		}
		for _, r := range l.systems[name].Inventory() {
			pairs = append(pairs, r.ID, name+"-of-"+l.uids[r.Owner])
		}
	}
	return strings.NewReplacer(pairs...)
}
