// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/journal"
)

func TestEventString(t *testing.T) {
	timer := journal.Cause{Kind: journal.CauseTimer}
	for _, tt := range []struct {
		event journal.Event
		want  string
	}{
		{journal.Triggered{Cause: journal.Cause{Kind: journal.CauseChildChange, Verb: "updated", Object: secret}}, "triggered by Secret default/db updated"},
		{journal.Started{}, "started"},
		{journal.Started{Deleting: true}, "started cleanup"},
		{journal.Started{Causes: []journal.Cause{timer, {Kind: journal.CauseOwnChange}}}, "started, because of timer, own change"},
		{journal.Started{Causes: []journal.Cause{timer}, Deleting: true}, "started cleanup, because of timer"},
		{journal.StepBegan{Step: "Bucket", Phase: journal.PhaseDo}, "Do of Bucket begins"},
		{journal.StepEnded{Step: "Bucket", Phase: journal.PhaseCleanup}, "Cleanup of Bucket done"},
		{journal.StepEnded{Step: "Bucket", Phase: journal.PhasePost, Outcome: journal.Outcome{Err: errBoom}}, "Post of Bucket failed: boom"},
		{journal.StepSkipped{Step: "Bucket"}, "Bucket is skipped: its condition does not hold"},
		{journal.StepSkipped{Step: "Bucket", After: "Secret"}, "Bucket is not reached: Secret did not pass"},
		{journal.ActionBegan{Action: "Create"}, "action Create begins"},
		{
			journal.ActionEnded{Action: "Create", Outcome: journal.Outcome{Waits: []journal.Wait{{For: "a"}, {For: "b", Every: time.Second}}}},
			"action Create waits for a; b",
		},
		{journal.ActionEnded{Action: "Create", Outcome: journal.Outcome{RequeueAfter: time.Minute}}, "action Create done, requeued after 1m0s"},
		{
			journal.ActionEnded{Action: "Create", Outcome: journal.Outcome{Err: errBoom, Waits: []journal.Wait{{For: "a"}}, RequeueAfter: time.Minute}},
			"action Create failed: boom",
		},
		{journal.ActionBlocked{Action: "Create", By: []string{"Read", "List"}}, "Create is blocked by Read, List"},
		{journal.Read{Object: secret}, "read Secret default/db"},
		{journal.Read{Object: secret, Live: true, Err: errBoom}, "read live Secret default/db: boom"},
		{journal.Wrote{Verb: "create", Object: secret}, "create Secret default/db"},
		{
			journal.Wrote{Verb: "patch", Object: db, Subresource: "status", Fields: []string{".status.a", ".status.b"}, Err: errBoom},
			"patch status of Database default/db (.status.a, .status.b): boom",
		},
		{journal.Changed{Verb: "update", ID: "b-1"}, "update of the resource b-1"},
		{journal.Changed{Verb: "create", Err: errBoom}, "create of the resource: boom"},
		{journal.Called{What: "POST /buckets"}, "called POST /buckets"},
		{journal.Called{What: "POST /buckets", Err: errBoom}, "called POST /buckets: boom"},
		{journal.Kept{Step: "Parts", Children: []journal.Child{{Object: secret, State: journal.ChildReady}, {Object: db, State: journal.ChildFailed}}}, "Parts has 1 of 2 objects ready"},
		{journal.Gated{Reason: "Paused", Message: "its owner wants it"}, "left alone: its owner wants it"},
		{journal.Unwatched{Step: "A", Object: journal.Object{Kind: "Secret", Namespace: "default", Name: "x"}}, "read Secret default/x, which nothing watches"},
		{journal.Unwatched{Object: journal.Object{Kind: "Secret", Namespace: "default"}}, "read a list of Secret in default, which nothing watches"},
		{journal.Unwatched{Object: journal.Object{Kind: "Node"}}, "read a list of Node, which nothing watches"},
		{journal.HotLoop{Reconciles: 12, Within: time.Minute}, "hot loop: 12 reconciles in 1m0s"},
		{
			journal.HotLoop{Reconciles: 12, Within: time.Minute, Fields: []string{".spec.a"}, Managers: []string{"x", "y"}},
			"hot loop: 12 reconciles in 1m0s, flapping fields .spec.a, written by x and y",
		},
		{journal.Requeued{After: time.Minute, Why: "poll"}, "requeued within 1m0s (poll)"},
		{journal.Finished{Result: journal.ResultWaiting}, "finished: waiting"},
	} {
		if got := tt.event.String(); got != tt.want {
			t.Errorf("%#v: got %q, want %q", tt.event, got, tt.want)
		}
	}
}
