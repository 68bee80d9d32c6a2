// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/show/difference"
)

// At moves all times in the objects as if they had been recorded at a time: what was an hour ago is
// an hour ago then. An operator compares them with its clock, which is another one when the
// recording is replayed. Numbers that stand for times are not moved.
func (r *Recording) At(start time.Time) {
	by := start.Sub(r.Recorded)
	for _, obj := range r.Objects {
		if !isDefinition(obj) {
			obj.Object, _ = moved(obj.Object, by).(map[string]any)
		}
	}
	r.Recorded = start
}

func moved(value any, by time.Duration) any {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = moved(child, by)
		}
	case []any:
		for i, child := range v {
			v[i] = moved(child, by)
		}
	case string:
		if difference.Moment.MatchString(v) {
			return movedTime(v, by)
		}
	}
	return value
}

// movedTime returns another time with as many digits.
func movedTime(text string, by time.Duration) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	layout := "2006-01-02T15:04:05"
	if _, fraction, ok := strings.Cut(text, "."); ok {
		layout += "." + strings.Repeat("0", strings.IndexAny(fraction, "Z+-"))
	}
	return t.Add(by).Format(layout + "Z07:00")
}
