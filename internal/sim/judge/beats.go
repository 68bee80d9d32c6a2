// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"reflect"
	"time"
)

// beats are when the status of an object was written as the last and as the one before: times that
// are renewed by the clock, such as lastChecked, are no work of an operator that is idle otherwise.
//
// A write renews if it changes nothing but times of the status, and numbers beside them. At most
// two do within Pace.Clock, because there may be two leaders for a moment: a loop writes more
// often. A write of anything else begins to count anew.
type beats [2]time.Time

// noteBeat notes a change, and reports whether it is one that renews.
func noteBeat(l *ledger, c *change) bool {
	if c.Type == "DELETED" {
		delete(l.beats, c.UID)
		return false
	}
	now, last := time.Now(), l.beats[c.UID]
	if !c.isUpdate() || c.Subresource != "status" || !renews(statusOf(c.Old), statusOf(c.New)) {
		l.beats[c.UID] = beats{now, now}
		return false
	}
	l.beats[c.UID] = beats{now, last[0]}
	return now.Sub(last[1]) >= l.pace.Clock
}

// renews reports whether two values differ in times, and otherwise at most in numbers.
func renews(before, after any) bool {
	renewed := false
	return onlyRenewed(before, after, &renewed) && renewed
}

func onlyRenewed(before, after any, renewed *bool) bool {
	if reflect.DeepEqual(before, after) {
		return true
	}
	switch now := after.(type) {
	case map[string]any:
		was, ok := before.(map[string]any)
		for key := range was {
			if _, stays := now[key]; !stays {
				return false
			}
		}
		for key, value := range now {
			ok = ok && onlyRenewed(was[key], value, renewed)
		}
		return ok
	case []any:
		was, ok := before.([]any)
		if ok = ok && len(was) == len(now); !ok {
			return false
		}
		for i := range now {
			ok = ok && onlyRenewed(was[i], now[i], renewed)
		}
		return ok
	case string:
		was, _ := before.(string)
		if !isTime(now) || before != nil && !isTime(was) {
			return false
		}
		*renewed = true
		return true
	}
	return isCount(before) && isCount(after)
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func isCount(value any) bool {
	switch value.(type) {
	case int64, float64, int:
		return true
	}
	return false
}
