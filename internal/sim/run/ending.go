// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
)

// operatorEnded returns the error that describes the end of the operator: a panic by its message
// and the place in the operator's code, any other end by the last lines of the log. Stacks are only
// in the log file.
func (r *runner) operatorEnded() error {
	<-r.operator.ended
	err := fmt.Errorf("%w: %s after %s", ErrOperatorEnded, r.operator.howItEnded(), age(time.Since(r.start)))
	lines := r.operator.log.last()
	if len(lines) == 0 {
		return fmt.Errorf("%w; it logged nothing", err)
	}
	if p, ok := panicIn(lines, r.project.ModuleDir); ok {
		return fmt.Errorf("%w: it panicked: %s%s", err, p, r.whereTheLogIs(lines))
	}
	if r.Logs {
		return err
	}
	shown, omitted := withoutStacks(lines)
	where := ""
	if omitted || len(shown) > tailLines {
		where = r.whereTheLogIs(lines)
	}
	shown = shown[max(0, len(shown)-tailLines):]
	return fmt.Errorf("%w; its last lines:\n    %s%s", err, strings.Join(shown, "\n    "), where)
}

// whereTheLogIs says in which file the log is. Without --logs=FILE, it writes the last lines to a
// file.
func (r *runner) whereTheLogIs(lines []string) string {
	file := r.LogFile
	if file == "" {
		file = r.program + ".log"
		if err := private.Write(file, []byte(strings.Join(lines, "\n")+"\n")); err != nil {
			return fmt.Sprintf("\n    its log could not be written: %v; --logs=FILE writes it to another place", err)
		}
	}
	return "\n    its log is in " + file
}
