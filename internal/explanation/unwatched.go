// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"strings"
)

// what says who reads what: "Password reads Secret shop/db-password".
func (u *Unwatched) what(c *Controller) string {
	who := "Controller " + c.Name
	if u.Step != "" {
		who = u.Step
	}
	if u.Object.Name != "" {
		return fmt.Sprintf("%s reads %s", who, u.Object)
	}
	text := fmt.Sprintf("%s lists objects of the kind %s", who, u.Object.Kind)
	if u.Object.Namespace != "" {
		text += " in " + u.Object.Namespace
	}
	return text
}

// isIn reports whether the text of a wait names what was read.
func (u *Unwatched) isIn(text string) bool {
	name := u.Object.String()
	rest, ok := strings.CutPrefix(text, name)
	return u.Object.Name != "" && ok && (rest == "" || strings.ContainsAny(rest[:1], ":,; "))
}
