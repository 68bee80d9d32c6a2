// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// deletionEnds demands that an object which is being deleted goes, or says why it stays: users wait
// for it, and so does what can only be deleted after it, such as its namespace.
//
// An object stays for good if the operator is idle, and nothing but finalizers that the operator has
// added holds the object. These are not accused:
//
//   - objects with a condition or a phase that says that something is not as it should be, and those
//     about which the operator has written a warning, as a Kubernetes Event, since the deletion. A
//     condition such as Suspended=False that was there before explains nothing;
//   - objects whose last reconcile has failed: the operator tries again;
//   - objects that may wait for another one that is being deleted: for a dependent, or for something
//     that the operator has created and others hold;
//   - objects without conditions or a phase, such as Secrets, as long as another object names them:
//     they may be in use, and can't say so.
type deletionEnds struct {
	before map[types.UID]map[string]map[string]any // the conditions of objects when they were deleted

	mu     sync.Mutex              // guards what follows: Events come in any goroutine
	warned map[types.UID]time.Time // about which object there was a warning, as the last
	events map[string]types.UID    // warnings by name, as later ones only count them
}

func newDeletionEnds() *deletionEnds {
	return &deletionEnds{before: map[types.UID]map[string]map[string]any{}, warned: map[types.UID]time.Time{}, events: map[string]types.UID{}}
}

func (o *deletionEnds) OnChange(_ *ledger, c *change, _ violate) {
	if isMarked(c.New) && !isMarked(c.Old) {
		o.before[c.UID] = conditionsOf(statusOf(c.New))
	}
}

func (o *deletionEnds) OnEvent(_ *ledger, r *apiserver.Request, _ violate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := r.Namespace + "/" + r.Name
	if event, ok := cluster.CreatedBy(r); ok {
		key = event.GetNamespace() + "/" + event.GetName()
		for _, field := range []string{"involvedObject", "regarding"} {
			about, _ := event.Object[field].(map[string]any)
			if uid, _ := about["uid"].(string); uid != "" && event.Object["type"] == "Warning" {
				o.events[key] = types.UID(uid)
			}
		}
	}
	if uid, ok := o.events[key]; ok {
		o.warned[uid] = time.Now()
	}
}

func (o *deletionEnds) WhenIdle(l *ledger, i Idle, v violate) {
	if l.aborted {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(l.live)) {
		obj := l.live[uid]
		deleted := obj.GetDeletionTimestamp()
		switch {
		case !onlyOperatorHolds(l, uid) || l.disturbed[uid] || time.Since(deleted.Time) < l.pace.Leaving:
		case o.isExplained(uid, obj), !o.warned[uid].Before(deleted.Time), isFailing(i, obj), awaitsDeletion(l, uid), mayBeInUse(l, uid):
		default:
			v(fmt.Sprintf("%s is being deleted and stays: the operator is idle, only its own finalizer %s holds the object, and neither a condition nor an Event says why",
				l.uids[uid], strings.Join(obj.GetFinalizers(), ", ")))
		}
	}
}

// isFailing reports whether the last reconcile of an object has failed.
func isFailing(i Idle, obj liveObject) bool {
	return slices.ContainsFunc(i.Failing, func(f Failing) bool { return f.Object == obj.GetNamespace()+"/"+obj.GetName() })
}

// isExplained reports whether the status of an object says why it stays. The phase of a kind of
// Kubernetes is the server's: a Namespace is Terminating, whatever the reason.
func (o *deletionEnds) isExplained(uid types.UID, obj liveObject) bool {
	for kind, c := range conditionsOf(statusOf(obj.Object)) {
		if !isBad(kind, c) {
			continue
		}
		was, same := o.before[uid][kind], true
		text := kind
		for _, field := range []string{"status", "reason", "message"} {
			same = same && c[field] == was[field]
			text += fmt.Sprint(" ", c[field])
		}
		if !same || c["status"] == "True" || goodNews.MatchString(kind) || ofDeletions.MatchString(text) {
			return true
		}
	}
	return cluster.IsCustomGroup(obj.resource.Group) && hasBadPhase(obj.Object)
}

var (
	// goodNews matches conditions that an object which is as it should be has with the status True.
	goodNews = regexp.MustCompile(`(Ready|Available|Synced|Healthy|Reconciled|Succeeded|Completed?|Valid|Accepted|Resolved|Connected|Reachable)$`)

	// ofDeletions matches what is said of deletions.
	ofDeletions = regexp.MustCompile(`(?i)delet|terminat|finaliz|clean|in.?use|referenc|protect|wait|block|held|retain|remain|fail|error`)
)

// onlyOperatorHolds reports whether an object is being deleted, and nothing holds it but finalizers
// that the operator has added. Those of Kubernetes are others', even if they are there from the
// creation on: the server adds some of them.
func onlyOperatorHolds(l *ledger, uid types.UID) bool {
	obj := l.live[uid]
	finalizers := obj.GetFinalizers()
	isOthers := func(f string) bool { return !l.held[uid][f] || ofKubernetes.MatchString(f) }
	return obj.GetDeletionTimestamp() != nil && len(finalizers) > 0 && !slices.ContainsFunc(finalizers, isOthers)
}

// ofKubernetes matches finalizers of Kubernetes.
var ofKubernetes = regexp.MustCompile(`^([^/]+\.)?kubernetes\.io/`)

// awaitsDeletion reports whether an object may wait for the deletion of another one.
func awaitsDeletion(l *ledger, uid types.UID) bool {
	for other, obj := range l.live {
		if obj.GetDeletionTimestamp() == nil || other == uid {
			continue
		}
		if slices.Contains(l.owners[other], uid) || l.made[other] && !onlyOperatorHolds(l, other) {
			return true
		}
	}
	return false
}

// mayBeInUse reports whether an object that can't say so may be in use: another one that the operator
// has not created names it.
func mayBeInUse(l *ledger, uid types.UID) bool {
	named := l.live[uid]
	status := statusOf(named.Object)
	if _, hasPhase := status["phase"]; len(conditionsOf(status)) > 0 || hasPhase {
		return false
	}
	for other, obj := range l.live {
		if other == uid || l.made[other] || obj.GetDeletionTimestamp() != nil || obj.GetNamespace() != "" && named.GetNamespace() != "" && obj.GetNamespace() != named.GetNamespace() {
			continue
		}
		for part, content := range obj.Object {
			if part != "metadata" && part != "status" && contains(content, named.GetName()) {
				return true
			}
		}
	}
	return false
}

// contains reports whether a text is one of those in a value.
func contains(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return contains(element, text) })
	case map[string]any:
		for _, child := range v {
			if contains(child, text) {
				return true
			}
		}
	}
	return false
}

// Leaving reports whether an object is being deleted that only the operator holds.
func (j *Judge) Leaving() bool {
	for uid := range j.ledger.live {
		if onlyOperatorHolds(j.ledger, uid) {
			return true
		}
	}
	return false
}
